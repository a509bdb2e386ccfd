//! Parts of an answer in their order: reasoning, texts, and calls of tools.

use setun::{Completion, TextDelta, ToolCall, ToolCallDelta};

use crate::text_tokens::TextTokens;

/// A part of an answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Part {
    Reasoning(String),
    Text {
        text: String,
        /// The tokens behind it, with log-probabilities; none if those were not requested.
        tokens: Vec<TextDelta>,
    },
    Call(ToolCall),
}

/// A step of the part that is last.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PartEvent<'a> {
    /// It begins, without its content.
    Begun(&'a Part),
    /// A piece of reasoning.
    Reasoning(&'a str),
    /// A piece of a text, with its tokens.
    Text(&'a str, &'a [TextDelta]),
    /// A piece of a call's arguments.
    Arguments(&'a str),
    /// It has ended.
    Ended(&'a Part),
}

/// The parts of an answer so far.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    list: Vec<Part>,
    is_open: bool,
    /// Tokens whose text has not come yet.
    pending: TextTokens,
}

impl Parts {
    /// The parts of a whole answer.
    pub(crate) fn of(completion: &Completion) -> Self {
        let mut parts = Self::default();
        for delta in &completion.deltas {
            parts.apply(delta, |_, _| {});
        }
        parts.end(|_, _| {});
        parts
    }

    pub(crate) fn list(&self) -> &[Part] {
        &self.list
    }

    /// Adds what came, and reports the steps with the place of their part.
    pub(crate) fn apply(
        &mut self,
        delta: &TextDelta,
        mut report: impl FnMut(usize, PartEvent<'_>),
    ) {
        let mut tokens = self.pending.take(delta);
        if let Some(piece) = delta.reasoning.as_deref().filter(|piece| !piece.is_empty()) {
            self.add_reasoning(piece, &mut report);
        }
        if !delta.text.is_empty() {
            self.add_text(&delta.text, &mut tokens, &mut report);
        }
        for call in &delta.tool_calls {
            self.add_call(call, &mut report);
        }
    }

    /// Ends the last part.
    pub(crate) fn end(&mut self, mut report: impl FnMut(usize, PartEvent<'_>)) {
        if let Some((place, part)) = self.list.iter().enumerate().next_back()
            && self.is_open
        {
            report(place, PartEvent::Ended(part));
        }
        self.is_open = false;
    }

    /// Begins a text that may be empty, unless the answer has a part.
    pub(crate) fn begin_if_empty(&mut self, mut report: impl FnMut(usize, PartEvent<'_>)) {
        if self.list.is_empty() {
            self.begin(Part::Text { text: String::new(), tokens: vec![] }, &mut report);
        }
    }

    fn begin(&mut self, part: Part, report: &mut impl FnMut(usize, PartEvent<'_>)) {
        self.end(&mut *report);
        report(self.list.len(), PartEvent::Begun(&part));
        self.list.push(part);
        self.is_open = true;
    }

    fn add_reasoning(&mut self, piece: &str, report: &mut impl FnMut(usize, PartEvent<'_>)) {
        if !matches!(self.list.last(), Some(Part::Reasoning(_))) {
            self.begin(Part::Reasoning(String::new()), report);
        }
        let place = self.list.len() - 1;
        if let Some(Part::Reasoning(text)) = self.list.last_mut() {
            text.push_str(piece);
            report(place, PartEvent::Reasoning(piece));
        }
    }

    fn add_text(
        &mut self,
        piece: &str,
        more: &mut Vec<TextDelta>,
        report: &mut impl FnMut(usize, PartEvent<'_>),
    ) {
        let goes_on = self.is_open && matches!(self.list.last(), Some(Part::Text { .. }));
        if !goes_on {
            self.begin(Part::Text { text: String::new(), tokens: vec![] }, report);
        }
        let place = self.list.len() - 1;
        if let Some(Part::Text { text, tokens }) = self.list.last_mut() {
            text.push_str(piece);
            report(place, PartEvent::Text(piece, more));
            tokens.append(more);
        }
    }

    fn add_call(&mut self, piece: &ToolCallDelta, report: &mut impl FnMut(usize, PartEvent<'_>)) {
        if piece.id.is_some() {
            let ToolCallDelta { id, name, .. } = piece.clone();
            let (id, name) = (id.unwrap_or_default(), name.unwrap_or_default());
            self.begin(Part::Call(ToolCall { id, name, arguments: String::new() }), report);
        }
        let place = self.list.len().saturating_sub(1);
        if let Some(Part::Call(call)) = self.list.last_mut()
            && !piece.arguments.is_empty()
        {
            call.arguments.push_str(&piece.arguments);
            report(place, PartEvent::Arguments(&piece.arguments));
        }
    }
}
