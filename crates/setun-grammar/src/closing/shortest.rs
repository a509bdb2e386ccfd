//! Shortest texts of terminals from any state of their automata.

use std::collections::VecDeque;

use llguidance::derivre::{NextByte, StateID};
use llguidance::earley::lexerspec::LexemeIdx;
use llguidance::earley::regexvec::{LexemeSet, RegexVec};

use super::NEVER;
use crate::Vocabulary;

/// The most states that are looked at for one text.
const MAX_STATES: usize = 5_000;

/// The bytes that are tried first.
const FIRST: &[u8] = b"\"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-:.TZ/@ ";

/// Automata of terminals, and what is known of their states.
#[derive(Clone)]
pub(super) struct Shortest {
    automaton: RegexVec,
    /// One byte of each class that the automata do not tell apart.
    bytes: Vec<u8>,
    /// The fewest tokens from a state on, by its number.
    known: Vec<Option<u32>>,
    /// Transitions and bytes that were looked at.
    work: usize,
}

impl Shortest {
    pub(super) fn new(automaton: RegexVec) -> Self {
        let mut seen = vec![false; 256];
        let order = FIRST.iter().copied().chain(0..=u8::MAX);
        let bytes = order
            .filter(|&byte| {
                let class = automaton.alpha().map(byte);
                class < seen.len() && !std::mem::replace(&mut seen[class], true)
            })
            .collect();
        Self { automaton, bytes, known: Vec::new(), work: 0 }
    }

    /// The state of a terminal before its first byte.
    pub(super) fn initial(&mut self, lexeme: LexemeIdx) -> StateID {
        let spec_len = self.automaton.lazy_regexes().len();
        let mut only = LexemeSet::new(spec_len);
        only.add(lexeme);
        self.automaton.initial_state(&only)
    }

    /// The state after a byte; `None` if there is none.
    pub(super) fn after(&mut self, state: StateID, byte: u8) -> Option<StateID> {
        let next = self.automaton.transition(state, byte);
        (!next.is_dead()).then_some(next)
    }

    /// Whether a text may end in a state.
    pub(super) fn is_accepting(&self, state: StateID) -> bool {
        let state = self.automaton.state_desc(state);
        state.greedy_accepting.is_some() || state.lazy_accepting.is_some()
    }

    /// Sets the work that is left.
    pub(super) fn set_fuel(&mut self, fuel: u64) {
        self.automaton.set_fuel(fuel);
    }

    /// The work since the last call.
    pub(super) fn take_work(&mut self) -> usize {
        std::mem::take(&mut self.work)
    }

    /// Whether the automata have become too large.
    pub(super) fn has_failed(&self) -> bool {
        self.automaton.has_error()
    }

    /// The fewest tokens that end a text from a state on, spelt in the fewest bytes.
    pub(super) fn tokens(&mut self, state: StateID, vocabulary: &Vocabulary) -> u32 {
        if let Some(&Some(known)) = self.known.get(state.as_usize()) {
            return known;
        }
        let tokens = match self.path(state) {
            Some(path) => {
                let bytes: Vec<u8> = path.iter().map(|&(_, byte)| byte).collect();
                self.work += 4 * bytes.len(); // of which many begin a token
                let counts = vocabulary.fewest_tokens(&bytes);
                for (&(state, _), &count) in path.iter().zip(&counts) {
                    // Another path to the same end may take fewer tokens.
                    let known = entry(&mut self.known, state);
                    *known = Some(count.min(known.unwrap_or(NEVER)));
                }
                counts.first().map_or(0, |&count| count.min(NEVER))
            }
            None => NEVER,
        };
        *entry(&mut self.known, state) = Some(tokens);
        tokens
    }

    /// The shortest text from a state on.
    pub(super) fn bytes(&mut self, state: StateID) -> Option<Vec<u8>> {
        Some(self.path(state)?.into_iter().map(|(_, byte)| byte).collect())
    }

    /// The states and bytes of the shortest text from a state on.
    fn path(&mut self, start: StateID) -> Option<Vec<(StateID, u8)>> {
        let (mut before, mut found): (Vec<Option<(StateID, u8)>>, _) = (Vec::new(), 0);
        let mut queue = VecDeque::from([start]);
        while let Some(state) = queue.pop_front() {
            if self.is_accepting(state) {
                let (mut path, mut place) = (Vec::new(), state);
                while place != start {
                    let (previous, byte) = before.get(place.as_usize()).copied().flatten()?;
                    path.push((previous, byte));
                    place = previous;
                }
                path.reverse();
                return Some(path);
            }
            if found > MAX_STATES || self.has_failed() {
                return None;
            }
            let forced = match self.automaton.next_byte(state) {
                NextByte::ForcedByte(byte) => Some(byte),
                _ => None,
            };
            let count = if forced.is_some() { 1 } else { self.bytes.len() };
            self.work += count;
            for index in 0..count {
                let byte = forced.unwrap_or_else(|| self.bytes[index]);
                let Some(next) = self.after(state, byte) else { continue };
                let way = entry(&mut before, next);
                if next != start && way.is_none() {
                    *way = Some((state, byte));
                    found += 1;
                    queue.push_back(next);
                }
            }
        }
        None
    }
}

/// The entry of a state, made if it is not there.
fn entry<T: Clone>(known: &mut Vec<Option<T>>, state: StateID) -> &mut Option<T> {
    let index = state.as_usize();
    if known.len() <= index {
        known.resize(index + 1, None);
    }
    &mut known[index]
}
