//! Lists of prompts and of conversations.

use futures::{StreamExt, stream};
use setun_text::Message;

use super::Engine;
use crate::{
    error::Error,
    event::{FinishReason, Usage},
    options::{GenerateOptions, Prompt},
    stream::Completion,
};

/// What a model said in a conversation.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ChatCompletion {
    /// The answer, as the conversation continues with it.
    pub message: Message,
    /// Why it ended.
    pub finish_reason: FinishReason,
    /// Tokens in and out.
    pub usage: Usage,
    /// The tokens behind it, and all of how it ended.
    pub completion: Completion,
}

impl Engine {
    /// Continues each of these prompts; as several at a time as the engine has streams. The results
    /// are in the order of the prompts, each as it is alone, and one that fails spoils no other.
    pub async fn text_completion<P: Into<Prompt>>(
        &self,
        prompts: impl IntoIterator<Item = P>,
        options: GenerateOptions,
    ) -> Vec<Result<Completion, Error>> {
        let complete = |prompt: P| {
            let (prompt, options) = (prompt.into(), options.clone());
            async move { self.generate(prompt, options)?.finish().await }
        };
        stream::iter(prompts).map(complete).buffered(self.max_concurrent()).collect().await
    }

    /// Answers each of these conversations, as [`text_completion`](Self::text_completion)
    /// continues prompts.
    pub async fn chat_completion<D: Into<Vec<Message>>>(
        &self,
        dialogs: impl IntoIterator<Item = D>,
        options: GenerateOptions,
    ) -> Vec<Result<ChatCompletion, Error>> {
        let prompts = dialogs.into_iter().map(|dialog| Prompt::Chat(dialog.into()));
        let answered = |completion: Completion| ChatCompletion {
            message: Message::calls(completion.text.clone(), &completion.tool_calls),
            finish_reason: completion.finish_reason,
            usage: completion.usage,
            completion,
        };
        let completions = self.text_completion(prompts, options).await;
        completions.into_iter().map(|completion| completion.map(answered)).collect()
    }

    /// Generations of one batch at most, on each device. Lists of requests are made as many at a time.
    #[must_use]
    pub fn max_concurrent(&self) -> usize {
        self.shared.max_concurrent
    }

    /// Generations that run and wait at most, on all devices together.
    #[must_use]
    pub fn max_requests(&self) -> usize {
        self.schedulers.iter().map(|scheduler| scheduler.slots.most()).sum()
    }

    /// The same of one device, which all texts of a request need.
    #[must_use]
    pub fn max_requests_of_a_device(&self) -> usize {
        self.schedulers.iter().map(|scheduler| scheduler.slots.most()).max().unwrap_or_default()
    }

    /// Generations that keep the engine busy: with as many in the queues as the batches have, no
    /// place stays empty when one ends. At most [`max_requests`](Self::max_requests).
    #[must_use]
    pub fn max_in_flight(&self) -> usize {
        (2 * self.max_concurrent() * self.schedulers.len()).min(self.max_requests())
    }
}
