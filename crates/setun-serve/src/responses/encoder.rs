//! Events of a response, and the response as a whole.

use std::sync::Arc;

use axum::response::Response;
use serde::Serialize;
use setun::{Completion, Event, TextDelta};

use super::{
    answer::{Content, End, Item, ResponseObject, Status, Writer, status},
    request::Settings,
};
use crate::{
    answer_parts::{Part, PartEvent, Parts},
    error::{ApiError, json},
    generation::Encoder,
    openai::{logprobs::ChatToken, streaming::Head},
    sse,
    token_words::TokenWords,
};

/// Writes the events of a response.
pub(super) struct ResponseEncoder {
    parts: Parts,
    events: EventWriter,
    is_begun: bool,
}

/// Numbers events, and has what they are written from.
struct EventWriter {
    writer: Writer,
    sequence_number: usize,
    /// Ids of the items that have begun.
    ids: Vec<String>,
}

#[derive(Serialize)]
struct Numbered<'a, T> {
    r#type: &'a str,
    sequence_number: usize,
    #[serde(flatten)]
    data: &'a T,
}

#[derive(Serialize)]
struct OfResponse<'a> {
    response: ResponseObject<'a>,
}

#[derive(Serialize)]
struct OfItem<'a> {
    output_index: usize,
    item: Item<'a>,
}

#[derive(Serialize)]
struct OfPart<'a> {
    item_id: &'a str,
    output_index: usize,
    content_index: usize,
    part: Content<'a>,
}

#[derive(Serialize)]
struct OfText<'a> {
    item_id: &'a str,
    output_index: usize,
    content_index: usize,
    #[serde(flatten)]
    text: PieceOrWhole<'a>,
    logprobs: Vec<ChatToken>,
}

#[derive(Serialize)]
struct OfReasoning<'a> {
    item_id: &'a str,
    output_index: usize,
    content_index: usize,
    #[serde(flatten)]
    text: PieceOrWhole<'a>,
}

#[derive(Serialize)]
struct OfArguments<'a> {
    item_id: &'a str,
    output_index: usize,
    #[serde(flatten)]
    arguments: PieceOrWhole<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum PieceOrWhole<'a> {
    Delta(&'a str),
    Text(&'a str),
    Arguments(&'a str),
}

impl ResponseEncoder {
    pub(super) fn new(head: Head, settings: Settings, words: Option<Arc<TokenWords>>) -> Self {
        let writer = Writer { head, settings, words };
        let events = EventWriter { writer, sequence_number: 0, ids: vec![] };
        Self { parts: Parts::default(), events, is_begun: false }
    }

    /// The response as a whole.
    pub(super) fn whole(mut self, completions: &[Completion]) -> Result<Response, ApiError> {
        let [completion] = completions else {
            return Err(ApiError::internal("a response has one text"));
        };
        self.parts = Parts::of(completion);
        self.parts.begin_if_empty(|_, _| {});
        for part in self.parts.list() {
            self.events.add_id(part);
        }
        let EventWriter { writer, ids, .. } = &self.events;
        Ok(json(&writer.response(&self.parts, ids, &End::Done(&completion.done))))
    }

    /// An event with the response.
    fn response(&mut self, kind: &str, end: &End<'_>, bytes: &mut Vec<u8>) {
        let EventWriter { writer, ids, sequence_number } = &mut self.events;
        let response = writer.response(&self.parts, ids, end);
        push(kind, sequence_number, &OfResponse { response }, bytes);
    }

    fn begin(&mut self, bytes: &mut Vec<u8>) {
        if !self.is_begun {
            self.is_begun = true;
            self.response("response.created", &End::None, bytes);
            self.response("response.in_progress", &End::None, bytes);
        }
    }

    fn text(&mut self, delta: &TextDelta, bytes: &mut Vec<u8>) {
        let Self { parts, events, .. } = self;
        parts.apply(delta, |place, event| events.part(place, event, Status::Completed, bytes));
    }

    fn end_parts(&mut self, status: Status, bytes: &mut Vec<u8>) {
        let Self { parts, events, .. } = self;
        let mut report =
            |place, event: PartEvent<'_>| events.part(place, event, status, &mut *bytes);
        parts.begin_if_empty(&mut report);
        parts.end(report);
    }
}

impl Encoder for ResponseEncoder {
    fn event(&mut self, _: usize, event: &Event, bytes: &mut Vec<u8>) {
        self.begin(bytes);
        match event {
            Event::Progress(_) | Event::Prompt(_) => {}
            Event::Text(delta) => self.text(delta, bytes),
            Event::Done(done) => {
                let end = End::Done(done);
                let status = status(&end);
                self.end_parts(status, bytes);
                let kind = match status {
                    Status::Completed => "response.completed",
                    _ => "response.incomplete",
                };
                self.response(kind, &end, bytes);
            }
        }
    }

    fn end(&mut self, _: &mut Vec<u8>) {}

    fn error(&mut self, error: &ApiError, bytes: &mut Vec<u8>) {
        self.begin(bytes);
        self.response("response.failed", &End::Error(error), bytes);
    }
}

impl EventWriter {
    /// Gives the next item its id.
    fn add_id(&mut self, part: &Part) {
        let prefix = match part {
            Part::Reasoning(_) => "rs",
            Part::Text { .. } => "msg",
            Part::Call(_) => "fc",
        };
        let id = &self.writer.head.id;
        let unique = id.split_once('_').map_or(id.as_str(), |(_, unique)| unique);
        self.ids.push(format!("{prefix}_{unique}_{}", self.ids.len()));
    }

    /// Events of a part. An ended one has this status.
    fn part(
        &mut self,
        output_index: usize,
        event: PartEvent<'_>,
        status: Status,
        bytes: &mut Vec<u8>,
    ) {
        if let PartEvent::Begun(part) = event {
            self.add_id(part);
        }
        let Self { writer, sequence_number, ids } = self;
        let item_id = ids.get(output_index).map(String::as_str).unwrap_or_default();
        let mut part_events = PartEvents { writer, sequence_number, item_id, output_index, bytes };
        match event {
            PartEvent::Begun(part) => part_events.begun(part),
            PartEvent::Reasoning(piece) => {
                let kind = "response.reasoning_text.delta";
                part_events.reasoning(kind, PieceOrWhole::Delta(piece));
            }
            PartEvent::Text(piece, tokens) => {
                part_events.text("response.output_text.delta", PieceOrWhole::Delta(piece), tokens);
            }
            PartEvent::Arguments(piece) => {
                let kind = "response.function_call_arguments.delta";
                part_events.arguments(kind, PieceOrWhole::Delta(piece));
            }
            PartEvent::Ended(part) => part_events.ended(part, status),
        }
    }
}

/// Events of one item.
struct PartEvents<'a> {
    writer: &'a Writer,
    sequence_number: &'a mut usize,
    item_id: &'a str,
    output_index: usize,
    bytes: &'a mut Vec<u8>,
}

impl PartEvents<'_> {
    fn begun(&mut self, part: &Part) {
        self.item("response.output_item.added", part, Status::InProgress);
        self.part("response.content_part.added", part);
    }

    fn ended(&mut self, part: &Part, status: Status) {
        match part {
            Part::Reasoning(text) => {
                self.reasoning("response.reasoning_text.done", PieceOrWhole::Text(text));
            }
            Part::Text { text, tokens } => {
                self.text("response.output_text.done", PieceOrWhole::Text(text), tokens);
            }
            Part::Call(call) => {
                let kind = "response.function_call_arguments.done";
                self.arguments(kind, PieceOrWhole::Arguments(&call.arguments));
            }
        }
        self.part("response.content_part.done", part);
        self.item("response.output_item.done", part, status);
    }

    fn item(&mut self, kind: &str, part: &Part, status: Status) {
        let item = self.writer.item(part, self.item_id, status);
        self.push(kind, &OfItem { output_index: self.output_index, item });
    }

    /// The part of an item; calls have none.
    fn part(&mut self, kind: &str, part: &Part) {
        let Some(part) = self.writer.content(part) else { return };
        let (item_id, output_index) = (self.item_id, self.output_index);
        self.push(kind, &OfPart { item_id, output_index, content_index: 0, part });
    }

    fn reasoning(&mut self, kind: &str, text: PieceOrWhole<'_>) {
        let (item_id, output_index) = (self.item_id, self.output_index);
        self.push(kind, &OfReasoning { item_id, output_index, content_index: 0, text });
    }

    fn text(&mut self, kind: &str, text: PieceOrWhole<'_>, tokens: &[TextDelta]) {
        let (item_id, output_index) = (self.item_id, self.output_index);
        let logprobs = self.writer.logprobs(tokens);
        self.push(kind, &OfText { item_id, output_index, content_index: 0, text, logprobs });
    }

    fn arguments(&mut self, kind: &str, arguments: PieceOrWhole<'_>) {
        let (item_id, output_index) = (self.item_id, self.output_index);
        self.push(kind, &OfArguments { item_id, output_index, arguments });
    }

    fn push(&mut self, kind: &str, data: &impl Serialize) {
        push(kind, self.sequence_number, data, self.bytes);
    }
}

fn push(kind: &str, sequence_number: &mut usize, data: &impl Serialize, bytes: &mut Vec<u8>) {
    let numbered = Numbered { r#type: kind, sequence_number: *sequence_number, data };
    sse::push_named(bytes, kind, &numbered);
    *sequence_number += 1;
}

#[cfg(test)]
mod tests;
