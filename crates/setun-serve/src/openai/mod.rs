//! Codec of the `OpenAI` API: requests in, answers and events out.

pub(crate) mod answer_description;
pub(crate) mod chat;
mod chat_answer;
mod completion_answer;
pub(crate) mod completions;
pub(crate) mod description;
pub(crate) mod embeddings;
pub(crate) mod logprobs;
pub(crate) mod models;
pub(crate) mod prompts;
pub(crate) mod streaming;
#[cfg(test)]
pub(crate) mod test_support;
pub(crate) mod usage;
