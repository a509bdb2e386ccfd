//! The place of one sequence, and the masks that let it come to an end.

use std::sync::Arc;

use llguidance::derivre::StateID;
use setun_text::TokenMask;

use super::chart::Chart;
use super::lexing::{Follow, MAX_DEPTH, Place};
use super::shortest::Shortest;
use super::{Closing, NEVER};
use crate::Vocabulary;

/// Tokens that complete a character of which a token has the first bytes.
const REST_OF_CHARACTER: usize = 3;

/// More values than one token opens in each other.
const MAX_OPENED: usize = 32;

/// Bytes that leave the state of a string without a condition as it is.
const USUAL: &[u8] = b"a z0-/";

/// Follows a text.
#[derive(Clone)]
pub(crate) struct Cursor {
    closing: Arc<Closing>,
    chart: Chart,
    shortest: Shortest,
    /// The places after each token; the first is that before all.
    places: Vec<Place>,
}

impl Cursor {
    /// Before the first token.
    pub(crate) fn new(closing: &Arc<Closing>) -> Option<Self> {
        let chart = Chart::new(&closing.rules)?;
        let (closing, shortest) = (Arc::clone(closing), closing.shortest.clone());
        Some(Self { closing, chart, shortest, places: vec![Place::default()] })
    }

    /// Takes a token; whether it can be followed.
    pub(crate) fn accept(&mut self, bytes: &[u8]) -> bool {
        let Some(mut place) = self.places.last().cloned() else { return false };
        self.chart.allow_work();
        for &byte in bytes {
            match self.after(place, byte) {
                Some(next) => place = next,
                None => return false,
            }
        }
        self.places.push(place);
        !self.shortest.has_failed()
    }

    /// Takes back the last tokens.
    pub(crate) fn rollback(&mut self, tokens: usize) {
        self.places.truncate(self.places.len().saturating_sub(tokens).max(1));
    }

    /// The fewest tokens known to complete the text, without the one that ends it.
    pub(crate) fn cost(&mut self, vocabulary: &Vocabulary) -> Option<usize> {
        let place = self.places.last()?.clone();
        self.chart.allow_work();
        Some(self.cost_at(&place, vocabulary)).filter(|&cost| cost < NEVER as usize)
    }

    /// Takes out of a mask the tokens after which the text cannot be completed within the tokens
    /// that are left, that which ends it included, and those that there is no work left to look at
    /// where others are known to be good. Whether all is well.
    pub(crate) fn restrict(
        &mut self,
        mask: &mut TokenMask,
        left: usize,
        vocabulary: &Vocabulary,
    ) -> bool {
        let Some(cost) = self.cost(vocabulary) else { return true };
        let Some(place) = self.places.last().cloned() else { return true };
        let is_near = left <= cost + 1 + self.closing.slack;
        let is_deep = place.depth + MAX_OPENED > MAX_DEPTH;
        if cost + 1 > left || !(is_near || is_deep) {
            return true;
        }
        let is_usual = place.in_string() && place.active.iter().all(|&(_, at)| self.is_usual(at));
        let mut walk = Walk { places: vec![place], bytes: Vec::new() };
        let mut costs = Vec::new();
        for &token in vocabulary.sorted() {
            if !mask.contains(token) || vocabulary.end_tokens().contains(token) {
                continue;
            }
            let kind = vocabulary.token_kind(token);
            let cost = if is_usual && !kind.is_structural {
                Some(cost + if kind.is_partial { REST_OF_CHARACTER } else { 0 })
            } else if self.chart.is_exhausted() {
                None
            } else {
                self.cost_after(&mut walk, vocabulary.token_bytes(token), vocabulary)
            };
            costs.push((token, cost.unwrap_or(NEVER as usize)));
        }
        if self.shortest.has_failed() {
            return false;
        }
        let ends = mask.iter().any(|token| vocabulary.end_tokens().contains(token));
        let least = costs.iter().map(|&(_, cost)| cost).min().unwrap_or(NEVER as usize);
        let within = left.saturating_sub(2).min(NEVER as usize - 1);
        if self.chart.is_exhausted() && !ends && least > within {
            return true; // a good one may be among those that were not looked at
        }
        let most = if ends { within } else { least.max(within) };
        for (token, cost) in costs {
            if cost > most {
                mask.remove(token);
            }
        }
        true
    }

    /// The cost after a token, whose bytes come after those of the last one in order.
    fn cost_after(
        &mut self,
        walk: &mut Walk,
        bytes: &[u8],
        vocabulary: &Vocabulary,
    ) -> Option<usize> {
        let common = walk.bytes.iter().zip(bytes).take_while(|(own, other)| own == other).count();
        walk.bytes.truncate(common);
        walk.places.truncate(common + 1);
        if walk.places.len() <= common {
            return None; // a shorter one has failed
        }
        for &byte in &bytes[common..] {
            let place = walk.places.last()?.clone();
            walk.bytes.push(byte);
            let next = self.after(place, byte)?;
            walk.places.push(next);
        }
        let place = walk.places.last()?.clone();
        Some(self.cost_at(&place, vocabulary))
    }

    fn after(&mut self, place: Place, byte: u8) -> Option<Place> {
        self.chart.spend(1);
        let rules = &self.closing.rules;
        let (chart, shortest) = (&mut self.chart, &mut self.shortest);
        place.after(byte, &mut Follow { rules, chart, shortest })
    }

    fn cost_at(&mut self, place: &Place, vocabulary: &Vocabulary) -> usize {
        let set = self.chart.set(place.set);
        if place.is_between() {
            return set.cost as usize;
        }
        let costs = place.active.iter().map(|&(symbol, state)| {
            let own = self.shortest.tokens(state, vocabulary);
            own.saturating_add(set.after(symbol)).min(NEVER)
        });
        let least = costs.min().unwrap_or(NEVER) as usize;
        self.chart.spend(self.shortest.take_work());
        least
    }

    /// Whether a string may go on with most characters for ever and end at any time.
    fn is_usual(&mut self, state: StateID) -> bool {
        let end = self.shortest.after(state, b'"');
        end.is_some_and(|end| self.shortest.is_accepting(end))
            && USUAL.iter().all(|&byte| self.shortest.after(state, byte) == Some(state))
    }
}

/// The places after the bytes of the last token that was looked at. Fewer than its bytes if it
/// failed.
struct Walk {
    places: Vec<Place>,
    bytes: Vec<u8>,
}
