//! The texts around the arguments of calls, and the tokens that they take.

use setun_text::ToolFormat;

use super::NEVER;
use crate::{ToolGrammar, Vocabulary};

/// A place in an answer that may call tools, outside of JSON documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FramePlace {
    /// Before the first call, after this many bytes of its marker.
    Text(usize),
    /// In a text that comes to no call.
    Free,
    /// After this many bytes of what comes before the arguments of this tool, or of another that is
    /// the same so far.
    Head { calls: usize, bytes: usize, tool: usize },
    /// After this many bytes of what comes behind arguments.
    Tail { calls: usize, bytes: usize },
}

/// The place or the document after a byte.
pub(super) enum Step {
    To(FramePlace),
    /// A document that begins with the byte, after this number of calls.
    Document {
        calls: usize,
        document: usize,
    },
}

/// The texts around arguments.
pub(super) struct Frame {
    marker: &'static [u8],
    /// Whether a call comes at the start or not at all.
    is_at_start: bool,
    pub(super) start: FramePlace,
    /// Before the arguments of the first call and of further ones, by tool; none of those where there is
    /// one call.
    heads: [Vec<Text>; 2],
    /// The fewest tokens of the arguments, by tool.
    arguments: Vec<u32>,
    /// Behind the arguments, to the end of the answer.
    tail: Text,
    /// Where a further call may begin in it.
    after: usize,
    /// The document of an answer without calls and the fewest tokens of it.
    format: Option<(usize, u32)>,
}

/// A text, and the fewest tokens from each of its bytes on.
struct Text {
    bytes: Vec<u8>,
    costs: Vec<u32>,
}

impl Text {
    fn new(text: &str, vocabulary: &Vocabulary) -> Self {
        let bytes = text.as_bytes().to_vec();
        Self { costs: vocabulary.fewest_tokens(&bytes), bytes }
    }

    fn cost(&self, from: usize) -> u32 {
        self.costs.get(from).copied().unwrap_or(NEVER).min(NEVER)
    }
}

impl Frame {
    /// Of calls of tools with these names, the fewest tokens of whose arguments are given; NEVER where
    /// they are not known.
    pub(super) fn new(
        tools: &ToolGrammar,
        names: &[&str],
        arguments: Vec<u32>,
        format: Option<(usize, u32)>,
        vocabulary: &Vocabulary,
    ) -> Self {
        let ToolFormat { marker, opening, middle, after, separator, closing, at_start, .. } =
            tools.format;
        let heads = |before: String| {
            let head = |name: &&str| Text::new(&format!("{before}{name}{middle}"), vocabulary);
            names.iter().map(head).collect::<Vec<_>>()
        };
        let further = separator.filter(|_| tools.parallel).map(|before| heads(before.to_owned()));
        let begins = tools.choice.begins_with_call();
        let head = FramePlace::Head { calls: 0, bytes: 0, tool: 0 };
        Self {
            marker: marker.as_bytes(),
            is_at_start: at_start || tools.text().is_some(),
            start: if begins { head } else { FramePlace::Text(0) },
            heads: [heads(format!("{marker}{opening}")), further.unwrap_or_default()],
            arguments,
            tail: Text::new(&format!("{after}{closing}"), vocabulary),
            after: after.len(),
            format,
        }
    }

    /// The place behind the arguments of the last of these calls.
    pub(super) fn behind(calls: usize) -> FramePlace {
        FramePlace::Tail { calls, bytes: 0 }
    }

    /// The first byte of a marker that may come, where nothing else has to.
    pub(super) fn marker(&self, place: FramePlace) -> Option<u8> {
        let is_text = place == FramePlace::Text(0) && !self.is_at_start;
        self.marker.first().copied().filter(|_| is_text)
    }

    pub(super) fn after(&self, place: FramePlace, byte: u8) -> Option<Step> {
        match place {
            FramePlace::Free => Some(Step::To(place)),
            FramePlace::Text(matched) => self.in_text(matched, byte),
            FramePlace::Head { calls, bytes, tool } => {
                let heads = &self.heads[usize::from(calls > 0)];
                let known = heads.get(tool)?;
                if bytes == known.bytes.len() {
                    return Some(Step::Document { calls, document: tool });
                }
                let tool = same(heads, &known.bytes[..bytes])
                    .find(|&tool| heads[tool].bytes.get(bytes) == Some(&byte))?;
                Some(Step::To(FramePlace::Head { calls, bytes: bytes + 1, tool }))
            }
            FramePlace::Tail { calls, bytes } => {
                if self.tail.bytes.get(bytes) == Some(&byte) {
                    return Some(Step::To(FramePlace::Tail { calls, bytes: bytes + 1 }));
                }
                let begins = |head: &Text| head.bytes.first() == Some(&byte);
                let may_begin = bytes == self.after && self.heads[1].iter().any(begins);
                may_begin.then_some(Step::To(FramePlace::Head { calls, bytes: 1, tool: 0 }))
            }
        }
    }

    fn in_text(&self, matched: usize, byte: u8) -> Option<Step> {
        let is_next = |matched: usize| self.marker.get(matched) == Some(&byte);
        if is_next(matched) {
            let bytes = matched + 1;
            let is_whole = bytes == self.marker.len();
            let head = FramePlace::Head { calls: 0, bytes, tool: 0 };
            return Some(Step::To(if is_whole { head } else { FramePlace::Text(bytes) }));
        }
        match self.format {
            Some((document, _)) => (matched == 0).then_some(Step::Document { calls: 0, document }),
            None if self.is_at_start => Some(Step::To(FramePlace::Free)),
            // The marker's first byte is nowhere else in it.
            None => Some(Step::To(FramePlace::Text(usize::from(is_next(0))))),
        }
    }

    /// The fewest tokens that end the answer from a place on.
    pub(super) fn cost(&self, place: FramePlace) -> u32 {
        match place {
            FramePlace::Free => 0,
            FramePlace::Text(_) if self.format.is_none() => 0,
            FramePlace::Text(bytes) => {
                let call = self.cost(FramePlace::Head { calls: 0, bytes, tool: 0 });
                self.format.filter(|_| bytes == 0).map_or(call, |(_, cost)| call.min(cost))
            }
            FramePlace::Head { calls, bytes, tool } => {
                let heads = &self.heads[usize::from(calls > 0)];
                let Some(known) = heads.get(tool) else { return NEVER };
                let read = known.bytes.get(..bytes).unwrap_or_default();
                let costs = same(heads, read)
                    .map(|tool| heads[tool].cost(bytes).saturating_add(self.arguments[tool]));
                costs.min().unwrap_or(NEVER).saturating_add(self.tail.cost(0)).min(NEVER)
            }
            FramePlace::Tail { bytes, .. } => self.tail.cost(bytes),
        }
    }

    /// The most tokens of a call, of those that are known.
    pub(super) fn highest_cost(&self) -> u32 {
        let costs = (0..self.arguments.len()).map(|tool| {
            let head = self.heads[0][tool].cost(0).saturating_add(self.arguments[tool]);
            head.saturating_add(self.tail.cost(0))
        });
        costs.filter(|&cost| cost < NEVER).max().unwrap_or(0)
    }
}

/// The tools whose heads begin with these bytes.
fn same<'a>(heads: &'a [Text], begin: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
    let is_same = move |(_, head): &(usize, &Text)| head.bytes.starts_with(begin);
    heads.iter().enumerate().filter(is_same).map(|(tool, _)| tool)
}
