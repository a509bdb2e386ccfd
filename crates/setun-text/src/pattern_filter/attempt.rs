//! A rule from one place of a text on.

#[cfg(feature = "regex")]
use super::expression::{Scratch, TextContext, Ways};
use super::rules::{Pattern, Rule};
use super::word::{Letter, Match};

/// What may be a match.
#[derive(Debug)]
pub(super) struct Attempt {
    /// The number of the rule.
    pub(super) rule: usize,
    /// Where it begins.
    pub(super) start: usize,
    /// Where it ends, if it is a match already.
    pub(super) found: Option<usize>,
    /// Whether the rest of the text may change that.
    pub(super) is_open: bool,
    progress: Progress,
}

#[derive(Debug)]
enum Progress {
    /// This many letters of a word are there.
    Word(usize),
    #[cfg(feature = "regex")]
    Expression(Ways),
}

/// As much of a text as is known and needed. Places are bytes from the beginning of all of it.
#[derive(Debug)]
pub(super) struct Seen {
    /// From at least one character before what is not settled.
    pub(super) text: String,
    /// The place where `text` begins.
    pub(super) base: usize,
    #[cfg(feature = "regex")]
    pub(super) scratch: Scratch,
}

impl Seen {
    /// Nothing of a text.
    pub(super) fn new(
        #[cfg_attr(not(feature = "regex"), expect(unused, reason = "automata alone need room"))]
        rules: &[Rule],
    ) -> Self {
        Self {
            text: String::new(),
            base: 0,
            #[cfg(feature = "regex")]
            scratch: Scratch::new(rules.iter().map(Rule::states).max().unwrap_or(0)),
        }
    }

    /// The place behind what is known.
    pub(super) fn end(&self) -> usize {
        self.base + self.text.len()
    }

    /// What lies between two places, as far as it is here.
    pub(super) fn between(&self, start: usize, end: usize) -> &str {
        let start = start.saturating_sub(self.base);
        self.text.get(start..end.saturating_sub(self.base)).unwrap_or_default()
    }

    /// Drops what lies before a place, but for one character.
    pub(super) fn forget(&mut self, place: usize) {
        let before = self.between(self.base, place).char_indices().next_back();
        let count = before.map_or(0, |(start, _)| start);
        self.text.drain(..count);
        self.base += count;
    }
}

impl Attempt {
    /// A rule from the place on where the known text ends, behind this character.
    pub(super) fn begin(index: usize, rule: &Rule, start: usize, before: Option<char>) -> Self {
        let (is_open, progress) = match &rule.pattern {
            Pattern::Word(word) => (word.may_begin(before), Progress::Word(0)),
            #[cfg(feature = "regex")]
            Pattern::Expression(expression) => (true, Progress::Expression(expression.begin())),
        };
        Self { rule: index, start, found: None, is_open, progress }
    }

    /// Whether it is a match, or may become one.
    pub(super) fn is_alive(&self) -> bool {
        self.is_open || self.found.is_some()
    }

    /// Takes the known text's last character, which begins at a place.
    pub(super) fn take(&mut self, rule: &Rule, seen: &mut Seen, at: usize, letter: &Letter) {
        if !self.is_open {
            return;
        }
        match (&rule.pattern, &mut self.progress) {
            (Pattern::Word(word), Progress::Word(known)) => match word.take(*known, letter) {
                Match::Open(more) => *known = more,
                Match::Complete => self.close(Some(seen.end())),
                Match::Before => self.close(Some(at)),
                Match::None => self.close(None),
            },
            #[cfg(feature = "regex")]
            (Pattern::Expression(expression), Progress::Expression(ways)) => {
                let Seen { text, base, scratch } = seen;
                let place = TextContext { text: text.as_bytes(), at: at - *base, is_known: true };
                self.is_open = expression.take(ways, place, scratch);
                self.found = ways.found.map(|length| self.start + length);
            }
            #[cfg(feature = "regex")]
            _ => self.close(None), // a rule's progress is of its kind
        }
    }

    /// The text is over.
    pub(super) fn end(&mut self, rule: &Rule, seen: &mut Seen) {
        let end = seen.end();
        if !self.is_open {
            return;
        }
        match (&rule.pattern, &mut self.progress) {
            (Pattern::Word(word), Progress::Word(known)) => {
                let is_complete = word.is_complete(*known);
                self.close(is_complete.then_some(end));
            }
            #[cfg(feature = "regex")]
            (Pattern::Expression(expression), Progress::Expression(ways)) => {
                let Seen { text, scratch, .. } = seen;
                let place = TextContext { text: text.as_bytes(), at: text.len(), is_known: true };
                expression.end(ways, place, scratch);
                let found = ways.found.map(|length| self.start + length);
                self.close(found);
            }
            #[cfg(feature = "regex")]
            _ => self.close(None),
        }
    }

    fn close(&mut self, found: Option<usize>) {
        self.found = found;
        self.is_open = false;
    }
}
