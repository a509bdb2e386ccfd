//! The place of a JSON text in its terminals: each string, number, word and sign is one.

use llguidance::derivre::StateID;

use super::chart::Chart;
use super::rules::Rules;
use super::shortest::Shortest;

/// The deepest nesting of values: somewhat less than readers of JSON take.
pub(super) const MAX_DEPTH: usize = 100;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Between,
    String,
    /// After a backslash in a string.
    Escaped,
    Number,
    Word,
}

/// A place in a text.
#[derive(Clone, Debug, Default)]
pub(super) struct Place {
    kind: Kind,
    /// Objects and arrays that are open.
    pub(super) depth: usize,
    /// The set of the chart after the last terminal.
    pub(super) set: usize,
    /// Terminals that the text may be in, and the states of their automata.
    pub(super) active: Vec<(usize, StateID)>,
}

/// Rules, chart and shortest lexemes with which a text is followed.
pub(super) struct Follow<'a> {
    pub(super) rules: &'a Rules,
    pub(super) chart: &'a mut Chart,
    pub(super) shortest: &'a mut Shortest,
}

impl Place {
    pub(super) fn in_string(&self) -> bool {
        self.kind == Kind::String
    }

    pub(super) fn is_between(&self) -> bool {
        self.kind == Kind::Between
    }

    /// The place after a byte; `None` where the rules do not allow it.
    pub(super) fn after(mut self, byte: u8, follow: &mut Follow<'_>) -> Option<Self> {
        let ends = match self.kind {
            Kind::Number => !matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-'),
            Kind::Word => !byte.is_ascii_alphabetic(),
            _ => false,
        };
        if ends {
            self.end(follow)?;
        }
        let kind = self.kind;
        match (kind, byte) {
            (Kind::Between, b' ' | b'\n' | b'\r' | b'\t') => return Some(self),
            (Kind::Between, _) => self.begin(byte, follow)?,
            _ => self.go_on(byte, follow)?,
        }
        match (kind, byte) {
            (Kind::Between, b'"') | (Kind::Escaped, _) => self.kind = Kind::String,
            (Kind::Between, b'0'..=b'9' | b'-') => self.kind = Kind::Number,
            (Kind::Between, b'a'..=b'z') => self.kind = Kind::Word,
            (Kind::Between, _) => {
                match byte {
                    b'{' | b'[' => self.depth += 1,
                    b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                    _ => {}
                }
                self.end(follow)?;
            }
            (Kind::String, b'"') => self.end(follow)?,
            (Kind::String, b'\\') => self.kind = Kind::Escaped,
            _ => {}
        }
        (self.depth <= MAX_DEPTH).then_some(self)
    }

    fn begin(&mut self, byte: u8, follow: &mut Follow<'_>) -> Option<()> {
        let Follow { rules, chart, shortest } = follow;
        for &symbol in chart.set(self.set).next() {
            if let Some(state) = rules.symbols[symbol].initial
                && let Some(state) = shortest.after(state, byte)
            {
                self.active.push((symbol, state));
            }
        }
        (!self.active.is_empty()).then_some(())
    }

    fn go_on(&mut self, byte: u8, follow: &mut Follow<'_>) -> Option<()> {
        self.active.retain_mut(|(_, state)| match follow.shortest.after(*state, byte) {
            Some(next) => {
                *state = next;
                true
            }
            None => false,
        });
        (!self.active.is_empty()).then_some(())
    }

    /// The terminal ends here.
    fn end(&mut self, follow: &mut Follow<'_>) -> Option<()> {
        let accepting = |&(symbol, state): &(usize, StateID)| {
            follow.shortest.is_accepting(state).then_some(symbol)
        };
        let terminals: Vec<usize> =
            self.active.drain(..).filter_map(|pair| accepting(&pair)).collect();
        let advanced = follow.chart.advance(follow.rules, self.set, terminals);
        self.kind = Kind::Between;
        self.set += 1;
        advanced.then_some(())
    }
}
