//! Events of a message.

use serde::Serialize;
use setun::{Done, Event, TextDelta};

use super::{
    answer::{Block, Message, Stop, Usage},
    errors::error_body,
};
use crate::{
    answer_parts::{Part, PartEvent, Parts},
    error::ApiError,
    generation::Encoder,
    openai::streaming::Head,
    request_id::RequestId,
    sse,
};

/// Writes the events of a message.
pub(super) struct MessageEncoder {
    head: Head,
    request_id: Option<RequestId>,
    parts: Parts,
    is_begun: bool,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum MessageEvent<'a> {
    MessageStart { message: Message<'a> },
    ContentBlockStart { index: usize, content_block: Block<'a> },
    ContentBlockDelta { index: usize, delta: Delta<'a> },
    ContentBlockStop { index: usize },
    MessageDelta { delta: Stop<'a>, usage: Usage },
    MessageStop,
    Ping,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[expect(clippy::enum_variant_names, reason = "the names of the API")]
enum Delta<'a> {
    ThinkingDelta { thinking: &'a str },
    SignatureDelta { signature: &'static str },
    TextDelta { text: &'a str },
    InputJsonDelta { partial_json: &'a str },
}

impl MessageEncoder {
    pub(super) fn new(head: Head, request_id: Option<RequestId>) -> Self {
        Self { head, request_id, parts: Parts::default(), is_begun: false }
    }

    fn begin(&mut self, event: &Event, bytes: &mut Vec<u8>) {
        if self.is_begun {
            return;
        }
        self.is_begun = true;
        let usage = match event {
            Event::Progress(progress) => Usage::of_prompt(progress.prompt_tokens),
            _ => Usage::default(),
        };
        MessageEvent::MessageStart { message: Message::empty(&self.head, usage) }.push(bytes);
    }

    fn text(&mut self, delta: &TextDelta, bytes: &mut Vec<u8>) {
        self.parts.apply(delta, |index, event| MessageEvent::push_part(index, event, bytes));
    }

    fn done(&mut self, done: &Done, bytes: &mut Vec<u8>) {
        self.parts.end(|index, event| MessageEvent::push_part(index, event, bytes));
        let (delta, usage) = (Stop::new(done), Usage::new(&done.usage));
        MessageEvent::MessageDelta { delta, usage }.push(bytes);
    }
}

impl Encoder for MessageEncoder {
    fn event(&mut self, _: usize, event: &Event, bytes: &mut Vec<u8>) {
        self.begin(event, bytes);
        match event {
            // Clients see that the connection lives, however long the prompt is.
            Event::Progress(_) => MessageEvent::Ping.push(bytes),
            Event::Prompt(_) => {}
            Event::Text(delta) => self.text(delta, bytes),
            Event::Done(done) => self.done(done, bytes),
        }
    }

    fn end(&mut self, bytes: &mut Vec<u8>) {
        MessageEvent::MessageStop.push(bytes);
    }

    fn error(&mut self, error: &ApiError, bytes: &mut Vec<u8>) {
        sse::push_named(bytes, "error", &error_body(error, self.request_id.as_ref()));
    }
}

impl<'a> MessageEvent<'a> {
    /// The events of a step of a part. Reasoning ends with its signature.
    fn push_part(index: usize, event: PartEvent<'_>, bytes: &mut Vec<u8>) {
        if let PartEvent::Ended(Part::Reasoning(_)) = event {
            let delta = Delta::SignatureDelta { signature: "" };
            MessageEvent::ContentBlockDelta { index, delta }.push(bytes);
        }
        MessageEvent::of(index, event).push(bytes);
    }

    /// A step of a part.
    fn of(index: usize, event: PartEvent<'a>) -> Self {
        match event {
            PartEvent::Begun(part) => {
                Self::ContentBlockStart { index, content_block: Block::empty(part) }
            }
            PartEvent::Reasoning(thinking) => {
                Self::ContentBlockDelta { index, delta: Delta::ThinkingDelta { thinking } }
            }
            PartEvent::Text(text, _) => {
                Self::ContentBlockDelta { index, delta: Delta::TextDelta { text } }
            }
            PartEvent::Arguments(partial_json) => {
                Self::ContentBlockDelta { index, delta: Delta::InputJsonDelta { partial_json } }
            }
            PartEvent::Ended(_) => Self::ContentBlockStop { index },
        }
    }

    fn push(&self, bytes: &mut Vec<u8>) {
        let name = match self {
            Self::MessageStart { .. } => "message_start",
            Self::ContentBlockStart { .. } => "content_block_start",
            Self::ContentBlockDelta { .. } => "content_block_delta",
            Self::ContentBlockStop { .. } => "content_block_stop",
            Self::MessageDelta { .. } => "message_delta",
            Self::MessageStop => "message_stop",
            Self::Ping => "ping",
        };
        sse::push_named(bytes, name, self);
    }
}

#[cfg(test)]
mod tests;
