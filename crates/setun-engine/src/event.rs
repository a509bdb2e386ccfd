//! Events of a generation.

use serde::Serialize;
use setun_text::ToolCallDelta;

use crate::device::DeviceKind;

/// One event of a generation. The names of its JSON form are fixed.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Event {
    /// How much of the prompt is computed, after each step before the first token, with
    /// `prompt_progress`. Of those that nobody has taken the last one is kept.
    Progress(PromptProgress),
    /// The prompt, before the first token, with `prompt_logprobs`.
    Prompt(PromptTokens),
    /// A token, and the text that it completes.
    Text(TextDelta),
    /// The last event.
    Done(Done),
}

impl Event {
    /// Whether there is one for each token.
    pub(crate) fn is_token(&self) -> bool {
        matches!(self, Self::Text(_))
    }
}

/// A token, and the text that it completes: nothing, while a character or a possible stop
/// string is incomplete, or a filter holds it back. The token that ends a text has an event too.
/// Filters see texts, not tokens.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TextDelta {
    /// Text to append.
    pub text: String,
    /// Text to append to the reasoning, if the token belongs to it or to its markers. It is no part
    /// of the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// The token behind it.
    pub token: u32,
    /// Natural logarithm of the token's probability before any sampling option, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logprob: Option<f64>,
    /// The likeliest tokens in its place, as many as were requested.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub top_logprobs: Vec<TokenLogprob>,
    /// Pieces of the calls that the token belongs to, with `tools`. They are no part of the text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCallDelta>,
}

/// A token and the natural logarithm of its probability.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TokenLogprob {
    /// The token.
    pub token: u32,
    /// Its text by itself: bytes that form no character are U+FFFD, a special token is spelt.
    pub text: String,
    /// At most 0.
    pub logprob: f64,
}

/// How much of a prompt is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PromptProgress {
    /// Tokens that are in the KV cache, cached ones included.
    pub computed_tokens: usize,
    /// Tokens of the prompt.
    pub prompt_tokens: usize,
}

/// The tokens of a prompt.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PromptTokens {
    /// Each with the text that it completes and what the model thought of it. The first token of a
    /// text has no log-probability: nothing comes before it.
    pub tokens: Vec<TextDelta>,
}

/// How a generation ended and what it cost.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Done {
    /// Why it ended.
    pub finish_reason: FinishReason,
    /// Whether the text ends where its constraint has it go on: JSON that is cut off, for instance.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unfinished: bool,
    /// The stop string that ended it, if one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<String>,
    /// Tokens in and out, whose sum is the total of other interfaces.
    pub usage: Usage,
    /// Times.
    pub timings: Timings,
    /// The seed that gives this text again.
    pub seed: u64,
    /// The device that ran.
    pub backend: DeviceKind,
    /// The level of the device that ran, or its own name.
    pub level: String,
    /// Name of the model.
    pub model: String,
}

/// Why a generation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// An end token or a stop string.
    Stop,
    /// The most tokens that were requested, or that fit the context.
    Length,
    /// An end token after calls of tools.
    ToolCalls,
    /// The caller. Text that was held back, because it might have become a stop string, was half
    /// a character or was held by a filter, is then not part of the answer.
    Aborted,
    /// Its time was over. As with the caller's end, text that was held back is left out.
    Timeout,
    /// The content filter.
    ContentFilter,
}

impl FinishReason {
    /// Its name in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::ToolCalls => "tool_calls",
            Self::Aborted => "aborted",
            Self::Timeout => "timeout",
            Self::ContentFilter => "content_filter",
        }
    }
}

/// Tokens in and out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Usage {
    /// Tokens of the prompt, special ones included.
    pub prompt_tokens: usize,
    /// Tokens generated, an end token included.
    pub completion_tokens: usize,
    /// Tokens of the prompt that were found in the cache and not computed.
    pub cached_tokens: usize,
    /// Number of generated tokens that are reasoning, without its markers.
    pub reasoning_tokens: usize,
}

/// Times of a generation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Timings {
    /// Seconds that loading the model took.
    pub load_seconds: f64,
    /// Seconds from the request to the first token.
    pub first_token_seconds: f64,
    /// Tokens a second after the first one; 0 if there is none.
    pub tokens_per_second: f64,
}
