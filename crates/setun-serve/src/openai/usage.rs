//! Numbers of tokens, and reasons of an end.

use serde::Serialize;
use setun::FinishReason;

/// Tokens of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Usage {
    prompt_tokens: usize,
    completion_tokens: usize,
    total_tokens: usize,
    prompt_tokens_details: PromptTokensDetails,
    completion_tokens_details: CompletionTokensDetails,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
struct PromptTokensDetails {
    cached_tokens: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
struct CompletionTokensDetails {
    reasoning_tokens: usize,
}

/// The usage of a chunk: null until the last one, which has the sum.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(untagged)]
pub(super) enum ChunkUsage {
    Pending(()),
    Total(Usage),
}

impl Usage {
    /// Adds those of a choice. Choices of one prompt share it, and the first of them counts it.
    pub(super) fn add(&mut self, usage: &setun::Usage, is_first: bool) {
        if is_first {
            self.prompt_tokens += usage.prompt_tokens;
            self.prompt_tokens_details.cached_tokens += usage.cached_tokens;
        }
        self.completion_tokens += usage.completion_tokens;
        self.completion_tokens_details.reasoning_tokens += usage.reasoning_tokens;
        self.total_tokens = self.prompt_tokens + self.completion_tokens;
    }
}

/// The reason of an end by its name in the API, which has none for a time limit and a cancellation.
pub(crate) fn finish_reason(reason: FinishReason) -> &'static str {
    match reason {
        FinishReason::Timeout => FinishReason::Length.as_str(),
        FinishReason::Aborted => FinishReason::Stop.as_str(),
        other => other.as_str(),
    }
}
