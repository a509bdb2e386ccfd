//! Regular expressions, followed character by character from where a match may begin.
//!
//! The automaton is that of `regex-automata`; its own searches want the whole text. This one is
//! Pike's (R. Cox, "Regular Expression Matching: the Virtual Machine Approach", 2009): all ways
//! to match at the same time, in the order in which the expression prefers them.

use regex_automata::nfa::thompson::{Compiler, Config, NFA, State, WhichCaptures};
use regex_automata::util::primitives::StateID;

use super::PatternFilter;

/// Most bytes of an automaton.
const MAX_BYTES: usize = 1 << 20;

/// A compiled expression.
#[derive(Debug)]
pub(super) struct Expression {
    automaton: NFA,
}

/// The ways in which a match may go on, the preferred one first.
#[derive(Debug)]
pub(super) struct Ways {
    states: Vec<StateID>,
    /// What was taken.
    characters: usize,
    bytes: usize,
    /// The length in bytes of the preferred match of those that are complete.
    pub(super) found: Option<usize>,
}

/// The text around a place, and whether what comes next is known.
#[derive(Clone, Copy)]
pub(super) struct TextContext<'a> {
    /// All that is known of the text from its beginning on, or from one character before the
    /// place or more.
    pub(super) text: &'a [u8],
    /// The place in `text`.
    pub(super) at: usize,
    /// Whether the next character is there, or the text ends here.
    pub(super) is_known: bool,
}

/// The states that were seen on the way through an automaton, and those still to be looked at.
#[derive(Debug)]
pub(super) struct Scratch {
    round: u64,
    seen: Vec<u64>, // in which round
    open: Vec<StateID>,
}

impl Scratch {
    /// For automata of this many states.
    pub(super) fn new(states: usize) -> Self {
        Self { round: 0, seen: vec![0; states], open: vec![] }
    }
}

impl Expression {
    /// Parses and compiles; else says what is wrong.
    pub(super) fn new(pattern: &str) -> Result<Self, String> {
        let parsed = regex_syntax::parse(pattern).map_err(|error| parse_error(&error))?;
        if parsed.properties().minimum_len() == Some(0) {
            return Err("it matches the empty text, expected a character or more".to_owned());
        }
        let config =
            Config::new().which_captures(WhichCaptures::None).nfa_size_limit(Some(MAX_BYTES));
        let automaton = Compiler::new().configure(config).build_from_hir(&parsed);
        let automaton = automaton.map_err(|error| error.to_string())?;
        Ok(Self { automaton })
    }

    pub(super) fn states(&self) -> usize {
        self.automaton.states().len()
    }

    /// All ways from the beginning.
    pub(super) fn begin(&self) -> Ways {
        Ways { states: vec![self.automaton.start_anchored()], characters: 0, bytes: 0, found: None }
    }

    /// Takes the last character of the known text, which begins at a place. False where no way goes
    /// on.
    pub(super) fn take(
        &self,
        ways: &mut Ways,
        place: TextContext<'_>,
        scratch: &mut Scratch,
    ) -> bool {
        self.reach(ways, place, scratch);
        if ways.characters == PatternFilter::MAX_MATCHED {
            return false;
        }
        let bytes = place.text.get(place.at..).unwrap_or_default();
        for (count, &byte) in (1..).zip(bytes) {
            let next = |&state: &StateID| self.step(state, byte);
            ways.states = ways.states.iter().filter_map(next).collect();
            ways.bytes += 1;
            let is_known = count < bytes.len();
            self.reach(ways, TextContext { at: place.at + count, is_known, ..place }, scratch);
        }
        ways.characters += 1;
        if ways.characters == PatternFilter::MAX_MATCHED {
            ways.states.retain(|&state| self.is_assertion(state));
        }
        !ways.states.is_empty()
    }

    /// Takes the end of the text.
    pub(super) fn end(&self, ways: &mut Ways, place: TextContext<'_>, scratch: &mut Scratch) {
        self.reach(ways, place, scratch);
    }

    /// Follows what takes no character, to states that take one, and to assertions if what comes
    /// next is not known. What is less preferred than a match is dropped.
    fn reach(&self, ways: &mut Ways, place: TextContext<'_>, scratch: &mut Scratch) {
        scratch.round += 1;
        scratch.open.clear();
        scratch.open.extend(ways.states.drain(..).rev());
        while let Some(id) = scratch.open.pop() {
            match scratch.seen.get_mut(id.as_usize()) {
                Some(round) if *round != scratch.round => *round = scratch.round,
                _ => continue,
            }
            match self.automaton.state(id) {
                State::ByteRange { .. } | State::Sparse(_) | State::Dense(_) => {
                    ways.states.push(id);
                }
                State::Look { .. } if !place.is_known => ways.states.push(id),
                State::Look { look, next } => {
                    let matcher = self.automaton.look_matcher();
                    if matcher.matches(*look, place.text, place.at) {
                        scratch.open.push(*next);
                    }
                }
                State::Union { alternates } => scratch.open.extend(alternates.iter().rev()),
                State::BinaryUnion { alt1, alt2 } => scratch.open.extend([*alt2, *alt1]),
                State::Capture { next, .. } => scratch.open.push(*next),
                State::Fail => {}
                State::Match { .. } => {
                    ways.found = Some(ways.bytes);
                    break;
                }
            }
        }
    }

    fn step(&self, state: StateID, byte: u8) -> Option<StateID> {
        match self.automaton.state(state) {
            State::ByteRange { trans } => trans.matches_byte(byte).then_some(trans.next),
            State::Sparse(transitions) => transitions.matches_byte(byte),
            State::Dense(transitions) => transitions.matches_byte(byte),
            _ => None,
        }
    }

    fn is_assertion(&self, state: StateID) -> bool {
        matches!(self.automaton.state(state), State::Look { .. })
    }
}

/// What is wrong with an expression, and where.
fn parse_error(error: &regex_syntax::Error) -> String {
    let (what, place) = match error {
        regex_syntax::Error::Parse(error) => (error.kind().to_string(), error.span().start),
        regex_syntax::Error::Translate(error) => (error.kind().to_string(), error.span().start),
        error => return error.to_string(),
    };
    match place.line {
        1 => format!("{what}, at character {}", place.column),
        line => format!("{what}, at character {} of line {line}", place.column),
    }
}
