//! Events with JavaScript names.

use serde::Serialize;
use setun::{
    DeviceKind, Done, FinishReason, PromptProgress, TextDelta, TokenLogprob, text::ToolCallDelta,
};
use wasm_bindgen::JsValue;

/// Largest integer below which a JavaScript number is exact.
const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;

/// [`setun::Event`] in camel case.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub(crate) enum Event {
    Progress {
        computed_tokens: usize,
        prompt_tokens: usize,
    },
    Prompt {
        tokens: Vec<Delta>,
    },
    Text(Delta),
    Done {
        finish_reason: FinishReason,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        unfinished: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        stop: Option<String>,
        usage: Usage,
        timings: Timings,
        #[serde(with = "serde_wasm_bindgen::preserve")]
        seed: JsValue,
        backend: DeviceKind,
        level: String,
        model: String,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        warnings: Vec<String>,
    },
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Delta {
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<String>,
    token: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    logprob: Option<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    top_logprobs: Vec<TokenLogprob>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<ToolCallDelta>,
}

impl From<TextDelta> for Delta {
    fn from(delta: TextDelta) -> Self {
        let TextDelta { text, reasoning, token, logprob, top_logprobs, tool_calls } = delta;
        Self { text, reasoning, token, logprob, top_logprobs, tool_calls }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_field_names, reason = "the names of JavaScript")]
pub(crate) struct Usage {
    prompt_tokens: usize,
    completion_tokens: usize,
    total_tokens: usize,
    cached_tokens: usize,
    reasoning_tokens: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Timings {
    load_seconds: f64,
    first_token_seconds: f64,
    tokens_per_second: f64,
}

impl Event {
    /// An event of a generation with these warnings, which come with its last one.
    pub(crate) fn new(event: setun::Event, warnings: &[String]) -> Self {
        match event {
            setun::Event::Progress(PromptProgress { computed_tokens, prompt_tokens }) => {
                Self::Progress { computed_tokens, prompt_tokens }
            }
            setun::Event::Prompt(prompt) => {
                Self::Prompt { tokens: prompt.tokens.into_iter().map(Delta::from).collect() }
            }
            setun::Event::Text(delta) => Self::Text(delta.into()),
            setun::Event::Done(Done {
                finish_reason,
                unfinished,
                stop,
                usage,
                timings,
                seed,
                backend,
                level,
                model,
            }) => Self::Done {
                finish_reason,
                unfinished,
                stop,
                usage: Usage {
                    prompt_tokens: usage.prompt_tokens,
                    completion_tokens: usage.completion_tokens,
                    total_tokens: usage.prompt_tokens + usage.completion_tokens,
                    cached_tokens: usage.cached_tokens,
                    reasoning_tokens: usage.reasoning_tokens,
                },
                timings: Timings {
                    load_seconds: timings.load_seconds,
                    first_token_seconds: timings.first_token_seconds,
                    tokens_per_second: timings.tokens_per_second,
                },
                seed: seed_for_js(seed),
                backend,
                level,
                model,
                warnings: warnings.to_vec(),
            },
        }
    }
}

/// A number if that is exact, else a `BigInt`.
#[expect(clippy::cast_precision_loss, reason = "exact up to the limit")]
fn seed_for_js(seed: u64) -> JsValue {
    if seed <= MAX_SAFE_INTEGER { JsValue::from_f64(seed as f64) } else { JsValue::from(seed) }
}
