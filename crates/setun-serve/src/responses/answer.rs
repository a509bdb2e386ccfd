//! Responses as JSON.

use serde::Serialize;
use serde_json::{Map, Value};
use setun::{Done, FinishReason, ReasoningEffort, TextDelta, ToolCall};

use super::request::Settings;
use crate::{
    answer_parts::{Part, Parts},
    error::ApiError,
    openai::{
        logprobs::{ChatToken, chat_tokens},
        streaming::Head,
    },
    token_words::TokenWords,
};

/// How far a response or an item is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Status {
    InProgress,
    Completed,
    Incomplete,
    Failed,
}

/// A response, as it is in events too.
#[derive(Serialize)]
pub(super) struct ResponseObject<'a> {
    id: &'a str,
    object: &'static str,
    created_at: u64,
    status: Status,
    background: bool,
    error: Option<ResponseError<'a>>,
    incomplete_details: Option<IncompleteDetails>,
    instructions: Option<&'a str>,
    max_output_tokens: Option<usize>,
    metadata: &'a Map<String, Value>,
    model: &'a str,
    output: Vec<Item<'a>>,
    parallel_tool_calls: bool,
    previous_response_id: Option<()>,
    reasoning: Reasoning,
    store: bool,
    temperature: Option<f32>,
    text: TextSettings<'a>,
    tool_choice: &'a Value,
    tools: &'a [Value],
    top_logprobs: usize,
    top_p: Option<f32>,
    truncation: &'static str,
    usage: Option<Usage>,
}

#[derive(Serialize)]
struct ResponseError<'a> {
    code: &'static str,
    message: &'a str,
}

#[derive(Serialize)]
struct IncompleteDetails {
    reason: &'static str,
}

#[derive(Serialize)]
struct Reasoning {
    effort: Option<&'static str>,
    summary: Option<()>,
}

#[derive(Serialize)]
struct TextSettings<'a> {
    format: &'a Value,
}

#[derive(Serialize)]
struct Usage {
    input_tokens: usize,
    input_tokens_details: InputDetails,
    output_tokens: usize,
    output_tokens_details: OutputDetails,
    total_tokens: usize,
}

#[derive(Serialize)]
struct InputDetails {
    cached_tokens: usize,
    cache_write_tokens: usize,
}

#[derive(Serialize)]
struct OutputDetails {
    reasoning_tokens: usize,
}

/// An item of the output.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Item<'a> {
    Reasoning {
        id: &'a str,
        status: Status,
        summary: [(); 0],
        content: Vec<Content<'a>>,
    },
    Message {
        id: &'a str,
        status: Status,
        role: &'static str,
        content: Vec<Content<'a>>,
    },
    FunctionCall {
        id: &'a str,
        status: Status,
        call_id: &'a str,
        name: &'a str,
        arguments: &'a str,
    },
}

/// The part of a message or of reasoning.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Content<'a> {
    ReasoningText { text: &'a str },
    OutputText { text: &'a str, annotations: [(); 0], logprobs: Vec<ChatToken> },
}

/// What responses and their events are written from.
pub(super) struct Writer {
    pub(super) head: Head,
    pub(super) settings: Settings,
    /// With log-probabilities.
    pub(super) words: Option<std::sync::Arc<TokenWords>>,
}

/// The end of a response.
pub(super) enum End<'a> {
    None,
    Done(&'a Done),
    Error(&'a ApiError),
}

impl Writer {
    /// The response with its items so far, which have these ids.
    pub(super) fn response<'a>(
        &'a self,
        parts: &'a Parts,
        ids: &'a [String],
        end: &End<'a>,
    ) -> ResponseObject<'a> {
        let Self { head: Head { id, created, model }, settings, .. } = self;
        let status = status(end);
        let items = parts.list().iter().zip(ids).enumerate();
        let last = ids.len().saturating_sub(1);
        let output = items.map(|(place, (part, id))| {
            let is_whole = place < last || status == Status::Completed;
            let status = if is_whole { Status::Completed } else { Status::Incomplete };
            self.item(part, id, status)
        });
        let options = &settings.options;
        ResponseObject {
            id,
            object: "response",
            created_at: *created,
            status,
            background: false,
            error: match end {
                End::Error(error) => Some(ResponseError::new(error)),
                _ => None,
            },
            incomplete_details: incomplete(end),
            instructions: settings.instructions.as_deref(),
            max_output_tokens: options.max_tokens,
            metadata: &settings.metadata,
            model,
            output: output.collect(),
            parallel_tool_calls: options.parallel_tool_calls.unwrap_or(true),
            previous_response_id: None,
            reasoning: Reasoning {
                effort: options.reasoning_effort.map(ReasoningEffort::name),
                summary: None,
            },
            store: false,
            temperature: options.temperature,
            text: TextSettings { format: &settings.format },
            tool_choice: &settings.tool_choice,
            tools: &settings.tools,
            top_logprobs: options.top_logprobs.unwrap_or_default(),
            top_p: options.top_p,
            truncation: "disabled",
            usage: match end {
                End::Done(done) => Some(Usage::new(&done.usage)),
                _ => None,
            },
        }
    }

    pub(super) fn item<'a>(&self, part: &'a Part, id: &'a str, status: Status) -> Item<'a> {
        // An item has no content before its part is added.
        let is_added = status != Status::InProgress;
        let content = || self.content(part).filter(|_| is_added).into_iter().collect();
        match part {
            Part::Reasoning(_) => Item::Reasoning { id, status, summary: [], content: content() },
            Part::Text { .. } => {
                Item::Message { id, status, role: "assistant", content: content() }
            }
            Part::Call(ToolCall { id: call_id, name, arguments }) => {
                Item::FunctionCall { id, status, call_id, name, arguments }
            }
        }
    }

    /// The part of an item; calls have none.
    pub(super) fn content<'a>(&self, part: &'a Part) -> Option<Content<'a>> {
        match part {
            Part::Reasoning(text) => Some(Content::ReasoningText { text }),
            Part::Text { text, tokens } => {
                let logprobs = self.logprobs(tokens);
                Some(Content::OutputText { text, annotations: [], logprobs })
            }
            Part::Call(_) => None,
        }
    }

    pub(super) fn logprobs(&self, tokens: &[TextDelta]) -> Vec<ChatToken> {
        self.words.as_ref().map(|words| chat_tokens(words, tokens)).unwrap_or_default()
    }
}

/// The status of a response.
pub(super) fn status(end: &End<'_>) -> Status {
    match end {
        End::None => Status::InProgress,
        End::Error(_) => Status::Failed,
        End::Done(done) => match done.finish_reason {
            FinishReason::Stop | FinishReason::ToolCalls => Status::Completed,
            _ => Status::Incomplete,
        },
    }
}

/// Why a response is cut off, where the API has a name for it.
fn incomplete(end: &End<'_>) -> Option<IncompleteDetails> {
    let End::Done(done) = end else { return None };
    let reason = match done.finish_reason {
        FinishReason::Length | FinishReason::Timeout => "max_output_tokens",
        FinishReason::ContentFilter => "content_filter",
        FinishReason::Stop | FinishReason::ToolCalls | FinishReason::Aborted => return None,
    };
    Some(IncompleteDetails { reason })
}

impl<'a> ResponseError<'a> {
    fn new(error: &'a ApiError) -> Self {
        let code = match error.status().as_u16() {
            429 => "rate_limit_exceeded",
            400 => "invalid_prompt",
            _ => "server_error",
        };
        Self { code, message: error.message() }
    }
}

impl Usage {
    fn new(usage: &setun::Usage) -> Self {
        let setun::Usage { prompt_tokens, completion_tokens, cached_tokens, reasoning_tokens } =
            *usage;
        Self {
            input_tokens: prompt_tokens,
            input_tokens_details: InputDetails { cached_tokens, cache_write_tokens: 0 },
            output_tokens: completion_tokens,
            output_tokens_details: OutputDetails { reasoning_tokens },
            total_tokens: prompt_tokens + completion_tokens,
        }
    }
}
