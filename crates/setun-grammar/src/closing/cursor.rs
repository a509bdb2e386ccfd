//! The place of one sequence, and the masks that let it come to an end.

use std::sync::Arc;

use llguidance::derivre::StateID;
use setun_text::TokenMask;

use super::chart::Chart;
use super::frame::{Frame, FramePlace, Step};
use super::lexing::{Follow, MAX_DEPTH, Place};
use super::shortest::Shortest;
use super::{Closing, Document, NEVER};
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
    /// JSON texts so far: one, or the arguments of each call.
    parts: Vec<Part>,
    /// The places after each token; the first is that before all.
    places: Vec<At>,
}

/// A JSON text that is followed.
#[derive(Clone)]
struct Part {
    document: usize,
    chart: Chart,
    shortest: Shortest,
}

/// A place in a text.
#[derive(Clone)]
enum At {
    /// Outside of JSON.
    Frame(FramePlace),
    /// In the JSON text of this number.
    Part(usize, Place),
}

impl Part {
    fn new(closing: &Closing, document: usize) -> Option<Self> {
        let Document { rules, shortest } = closing.documents.get(document)?.as_ref()?;
        Some(Self { document, chart: Chart::new(rules)?, shortest: shortest.clone() })
    }

    /// Whether its text is complete, with nothing that may come.
    fn is_whole(&self, place: &Place) -> bool {
        place.is_between()
            && place.depth == 0
            && place.set > 0
            && self.chart.set(place.set).cost == 0
    }
}

impl Cursor {
    /// Before the first token.
    pub(crate) fn new(closing: &Arc<Closing>) -> Option<Self> {
        let (mut parts, mut places) = (vec![], vec![]);
        if let Some(frame) = closing.frame() {
            places.push(At::Frame(frame.start));
        } else {
            parts.push(Part::new(closing, 0)?);
            places.push(At::Part(0, Place::default()));
        }
        Some(Self { closing: Arc::clone(closing), parts, places })
    }

    /// Takes a token; whether it can be followed.
    pub(crate) fn accept(&mut self, bytes: &[u8]) -> bool {
        let Some(mut at) = self.places.last().cloned() else { return false };
        self.allow_work();
        for &byte in bytes {
            match self.after(at, byte) {
                Some(next) => at = next,
                None => return false,
            }
        }
        self.places.push(at);
        !self.has_failed()
    }

    fn allow_work(&mut self) {
        self.parts.iter_mut().for_each(|part| part.chart.allow_work());
    }

    fn is_exhausted(&self) -> bool {
        self.parts.iter().any(|part| part.chart.is_exhausted())
    }

    fn has_failed(&self) -> bool {
        self.parts.iter().any(|part| part.shortest.has_failed())
    }

    /// Takes back the last tokens.
    pub(crate) fn rollback(&mut self, tokens: usize) {
        self.places.truncate(self.places.len().saturating_sub(tokens).max(1));
    }

    /// The fewest tokens known to complete the text, without the one that ends it.
    pub(crate) fn cost(&mut self, vocabulary: &Vocabulary) -> Option<usize> {
        let at = self.places.last()?.clone();
        self.allow_work();
        Some(self.cost_at(&at, vocabulary)).filter(|&cost| cost < NEVER as usize)
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
        let Some(at) = self.places.last().cloned() else { return true };
        let is_near = left <= cost + 1 + self.closing.slack;
        let is_deep = matches!(&at, At::Part(_, place) if place.depth + MAX_OPENED > MAX_DEPTH);
        let is_free = matches!(at, At::Frame(FramePlace::Free));
        if cost + 1 > left || is_free || !(is_near || is_deep) {
            return true;
        }
        let usual = self.usual(&at);
        let mut walk = Walk { places: vec![at], bytes: Vec::new() };
        let mut costs = Vec::new();
        for &token in vocabulary.sorted() {
            if !mask.contains(token) || vocabulary.end_tokens().contains(token) {
                continue;
            }
            let kind = vocabulary.token_kind(token);
            let cost = match usual {
                Usual::String if !kind.is_structural => {
                    Some(cost + if kind.is_partial { REST_OF_CHARACTER } else { 0 })
                }
                Usual::Without(byte) if !vocabulary.token_bytes(token).contains(&byte) => {
                    Some(cost)
                }
                _ if self.is_exhausted() => None,
                _ => self.cost_after(&mut walk, vocabulary.token_bytes(token), vocabulary),
            };
            costs.push((token, cost.unwrap_or(NEVER as usize)));
        }
        if self.has_failed() {
            return false;
        }
        let ends = mask.iter().any(|token| vocabulary.end_tokens().contains(token));
        let least = costs.iter().map(|&(_, cost)| cost).min().unwrap_or(NEVER as usize);
        let within = left.saturating_sub(2).min(NEVER as usize - 1);
        if self.is_exhausted() && !ends && least > within {
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
            let at = walk.places.last()?.clone();
            walk.bytes.push(byte);
            let next = self.after(at, byte)?;
            walk.places.push(next);
        }
        let at = walk.places.last()?.clone();
        Some(self.cost_at(&at, vocabulary))
    }

    fn after(&mut self, at: At, byte: u8) -> Option<At> {
        let place = match at {
            At::Frame(place) => place,
            At::Part(number, place) => {
                let part = self.parts.get_mut(number)?;
                // What comes behind arguments is no more of theirs.
                if self.closing.frame().is_none() || !part.is_whole(&place) {
                    part.chart.spend(1);
                    let rules = &self.closing.documents[part.document].as_ref()?.rules;
                    let (chart, shortest) = (&mut part.chart, &mut part.shortest);
                    let place = place.after(byte, &mut Follow { rules, chart, shortest })?;
                    return Some(At::Part(number, place));
                }
                Frame::behind(number + 1)
            }
        };
        match self.closing.frame()?.after(place, byte)? {
            Step::To(place) => Some(At::Frame(place)),
            Step::Document { calls, document } => {
                if self.parts.get(calls).is_none_or(|part| part.document != document) {
                    self.parts.truncate(calls);
                    self.parts.push(Part::new(&self.closing, document)?);
                }
                self.after(At::Part(calls, Place::default()), byte)
            }
        }
    }

    fn cost_at(&mut self, at: &At, vocabulary: &Vocabulary) -> usize {
        let frame = self.closing.frame();
        let (number, place) = match at {
            At::Frame(place) => return frame.map_or(NEVER, |frame| frame.cost(*place)) as usize,
            At::Part(number, place) => (*number, place),
        };
        let part = &mut self.parts[number];
        let is_arguments = frame.is_some() && part.document + 1 < self.closing.documents.len();
        let tail = frame.filter(|_| is_arguments);
        let tail = tail.map_or(0, |frame| frame.cost(Frame::behind(number + 1)));
        let set = part.chart.set(place.set);
        let own = if place.is_between() {
            set.cost
        } else {
            let costs = place.active.iter().map(|&(symbol, state)| {
                let own = part.shortest.tokens(state, vocabulary);
                own.saturating_add(set.after(symbol)).min(NEVER)
            });
            costs.min().unwrap_or(NEVER)
        };
        part.chart.spend(part.shortest.take_work());
        own.saturating_add(tail).min(NEVER) as usize
    }

    /// What most tokens do at a place.
    fn usual(&mut self, at: &At) -> Usual {
        match at {
            At::Frame(place) => {
                let frame = self.closing.frame();
                let marker = frame.and_then(|frame| frame.marker(*place));
                marker.map_or(Usual::Nothing, Usual::Without)
            }
            At::Part(number, place) => {
                let shortest = &mut self.parts[*number].shortest;
                let is_usual = place.in_string()
                    && place.active.iter().all(|&(_, state)| is_usual(shortest, state));
                if is_usual { Usual::String } else { Usual::Nothing }
            }
        }
    }
}

/// Whether a string may go on with most characters for ever and end at any time.
fn is_usual(shortest: &mut Shortest, state: StateID) -> bool {
    let end = shortest.after(state, b'"');
    end.is_some_and(|end| shortest.is_accepting(end))
        && USUAL.iter().all(|&byte| shortest.after(state, byte) == Some(state))
}

/// What most tokens do at a place.
#[derive(Clone, Copy)]
enum Usual {
    /// Nothing that they have in common.
    Nothing,
    /// They go on with a string.
    String,
    /// Without this byte they change nothing.
    Without(u8),
}

/// The places after the bytes of the last token that was looked at. Fewer than its bytes if it
/// failed.
struct Walk {
    places: Vec<At>,
    bytes: Vec<u8>,
}
