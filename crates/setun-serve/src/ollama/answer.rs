//! Answers: whole, and as lines of JSON.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use axum::response::Response;
use serde::Serialize;
use setun::{Completion, Done, Event, FinishReason, TextDelta, ToolCall, text::escape_line_breaks};

use super::{
    calls,
    description::LINES,
    error_shape::ErrorBody,
    time::{nanoseconds, rfc3339},
};
use crate::{
    error::{ApiError, json_bytes},
    generation::Encoder,
    openai::{
        logprobs::{ChatLogprobs, ChatToken},
        usage::finish_reason,
    },
    text_tokens::TextTokens,
    token_words::TokenWords,
};

/// Which request is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// A text in `response`.
    Generate,
    /// A message.
    Chat,
}

/// Writes an answer.
pub(super) struct AnswerEncoder {
    pub(super) model: String,
    pub(super) shape: Shape,
    /// Time in which the model was loaded for this request.
    pub(super) load_time: Duration,
    /// With log-probabilities.
    pub(super) words: Option<Arc<TokenWords>>,
    pub(super) clock: fn() -> SystemTime,
    /// Tokens whose text is still to come.
    tokens: TextTokens,
    calls: Vec<ToolCall>,
    /// Calls that have been written.
    written: usize,
}

/// A line. What calls tools ends in a message, to which the calls are added.
#[derive(Serialize)]
struct Line<'a> {
    model: &'a str,
    created_at: String,
    done: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    done_reason: Option<&'static str>,
    /// Whether a call or the text of a format was cut off. Such calls are left out.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    unfinished: bool,
    #[serde(flatten)]
    cost: Option<Cost>,
    #[serde(skip_serializing_if = "Option::is_none")]
    logprobs: Option<Vec<ChatToken>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<AnswerMessage<'a>>,
}

#[derive(Serialize)]
struct AnswerMessage<'a> {
    role: &'static str,
    content: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<&'a str>,
}

/// Tokens and times, in nanoseconds.
#[derive(Serialize)]
struct Cost {
    total_duration: u64,
    load_duration: u64,
    prompt_eval_count: usize,
    prompt_eval_duration: u64,
    eval_count: usize,
    eval_duration: u64,
}

/// What a line has besides its head.
#[derive(Default)]
struct Content<'a> {
    text: &'a str,
    thinking: &'a str,
    deltas: &'a [TextDelta],
    done_reason: Option<&'static str>,
    unfinished: bool,
    cost: Option<Cost>,
    /// Number of the first call, and the calls.
    calls: Option<(usize, &'a [ToolCall])>,
}

impl AnswerEncoder {
    pub(super) fn new(model: String, shape: Shape, load_time: Duration) -> Self {
        let (words, clock) = (None, SystemTime::now as fn() -> SystemTime);
        let (tokens, calls) = (TextTokens::default(), vec![]);
        Self { model, shape, load_time, words, clock, tokens, calls, written: 0 }
    }

    /// The whole answer.
    pub(super) fn whole(&self, completion: &Completion) -> Response {
        let Completion { text, reasoning: thinking, tool_calls, done, .. } = completion;
        let deltas = &TextTokens::of(&completion.deltas)[..];
        let calls = tool_calls.iter().any(calls::is_whole).then_some((0, &tool_calls[..]));
        let mut bytes = vec![];
        self.push(
            &mut bytes,
            Content {
                text,
                thinking,
                deltas,
                done_reason: Some(reason(done)),
                unfinished: done.unfinished,
                cost: Some(self.cost(done)),
                calls,
            },
        );
        json_bytes(bytes)
    }

    /// The answer to a request without a prompt, which only has the model loaded or unloaded.
    pub(super) fn without_text(&self, done_reason: &'static str) -> Response {
        let mut bytes = vec![];
        let done_reason = Some(done_reason);
        self.push(&mut bytes, Content { done_reason, ..Content::default() });
        json_bytes(bytes)
    }

    fn cost(&self, done: &Done) -> Cost {
        let setun::Usage { prompt_tokens, completion_tokens, .. } = done.usage;
        let prompt_time = seconds(done.timings.first_token_seconds);
        let more = u32::try_from(completion_tokens.saturating_sub(1)).unwrap_or(u32::MAX);
        let text_time = seconds(f64::from(more) / done.timings.tokens_per_second);
        Cost {
            total_duration: nanoseconds(self.load_time + prompt_time + text_time),
            load_duration: nanoseconds(self.load_time),
            prompt_eval_count: prompt_tokens,
            prompt_eval_duration: nanoseconds(prompt_time),
            eval_count: completion_tokens,
            eval_duration: nanoseconds(text_time),
        }
    }

    fn push(&self, bytes: &mut Vec<u8>, content: Content<'_>) {
        let Content { text, thinking, deltas, done_reason, unfinished, cost, calls } = content;
        let thinking = Some(thinking).filter(|thinking| !thinking.is_empty());
        let tokens = |words| ChatLogprobs::new(words, deltas).content;
        let logprobs = self.words.as_deref().map(tokens).filter(|tokens| !tokens.is_empty());
        let is_chat = self.shape == Shape::Chat;
        let line = Line {
            model: &self.model,
            created_at: rfc3339((self.clock)()),
            done: done_reason.is_some(),
            done_reason,
            unfinished,
            cost,
            logprobs,
            response: (!is_chat).then_some(text),
            thinking: thinking.filter(|_| !is_chat),
            message: is_chat.then_some(AnswerMessage {
                role: "assistant",
                content: text,
                thinking,
            }),
        };
        let Ok(json) = serde_json::to_vec(&line) else { return }; // every key is a string
        let Some((first, calls)) = calls.filter(|_| is_chat) else {
            return bytes.extend_from_slice(&json);
        };
        bytes.extend_from_slice(json.strip_suffix(b"}}").unwrap_or(&json));
        bytes.extend_from_slice(b",\"tool_calls\":");
        calls::push(bytes, first, calls);
        bytes.extend_from_slice(b"}}");
    }

    fn push_line(&self, bytes: &mut Vec<u8>, content: Content<'_>) {
        let begin = bytes.len();
        self.push(bytes, content);
        escape_line_breaks(bytes, begin);
        bytes.push(b'\n');
    }

    /// Writes the calls that have ended since the last ones, each in a line.
    fn push_calls(&mut self, bytes: &mut Vec<u8>) {
        let first = std::mem::replace(&mut self.written, self.calls.len());
        for (index, call) in self.calls.iter().enumerate().skip(first) {
            if calls::is_whole(call) {
                let calls = Some((index, std::slice::from_ref(call)));
                self.push_line(bytes, Content { calls, ..Content::default() });
            }
        }
    }

    fn text(&mut self, delta: &TextDelta, bytes: &mut Vec<u8>) {
        let thinking = delta.reasoning.as_deref().unwrap_or_default();
        let tokens = self.tokens.take(delta);
        if !delta.text.is_empty() || !thinking.is_empty() {
            let (text, deltas) = (&*delta.text, &tokens[..]);
            self.push_line(bytes, Content { text, thinking, deltas, ..Content::default() });
        }
        for piece in &delta.tool_calls {
            if piece.index >= self.calls.len() {
                self.push_calls(bytes);
            }
            ToolCall::join(&mut self.calls, piece);
        }
    }
}

impl Encoder for AnswerEncoder {
    const CONTENT_TYPE: &'static str = LINES;

    fn event(&mut self, _: usize, event: &Event, events: &mut Vec<u8>) {
        match event {
            Event::Progress(_) | Event::Prompt(_) => {}
            Event::Text(delta) => self.text(delta, events),
            Event::Done(done) => {
                self.push_calls(events);
                let (done_reason, cost) = (Some(reason(done)), Some(self.cost(done)));
                let unfinished = done.unfinished;
                let last = Content { done_reason, unfinished, cost, ..Content::default() };
                self.push_line(events, last);
            }
        }
    }

    fn end(&mut self, _: &mut Vec<u8>) {}

    fn error(&mut self, error: &ApiError, events: &mut Vec<u8>) {
        events.extend(ErrorBody::of(error).line());
    }
}

/// The reason of an end by its name in the API, which has none for calls.
fn reason(done: &Done) -> &'static str {
    match done.finish_reason {
        FinishReason::ToolCalls => finish_reason(FinishReason::Stop),
        other => finish_reason(other),
    }
}

/// None of what is no time.
fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

#[cfg(test)]
mod tests;
