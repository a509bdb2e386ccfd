//! The stream of one generation.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use crate::{
    command::Command,
    error::Error,
    event::{Done, Event, FinishReason, TextDelta, Usage},
    event_queue::Queue,
};
use setun_text::ToolCall;

use futures::{Stream, StreamExt, channel::mpsc::UnboundedSender, stream::FusedStream};

/// A running generation: a stream of [`Event`]s, the last of which is [`Event::Done`].
///
/// It runs ahead of its consumer by some tokens and then waits. Dropping it ends the
/// generation and frees its cache.
#[derive(Debug)]
pub struct GenerationStream {
    queue: Arc<Queue>,
    commands: UnboundedSender<Command>,
    ended: bool,
    warnings: Arc<[String]>,
}

/// Ends a generation from elsewhere, and says how far it is. The stream then yields a last event, with
/// [`FinishReason::Aborted`](crate::FinishReason::Aborted). It keeps the engine alive.
#[derive(Clone, Debug)]
pub struct CancelHandle {
    queue: Arc<Queue>,
    commands: UnboundedSender<Command>,
}

/// A finished generation.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Completion {
    /// The prompt's tokens, with `prompt_logprobs`.
    pub prompt: Vec<TextDelta>,
    /// The whole text.
    pub text: String,
    /// The model's reasoning before the text; empty if there is none.
    pub reasoning: String,
    /// The tokens behind it.
    pub tokens: Vec<u32>,
    /// Each of them with its part of the text, and its log-probabilities if requested.
    pub deltas: Vec<TextDelta>,
    /// Its calls of tools. Where the text was cut, the last one may be, too.
    pub tool_calls: Vec<ToolCall>,
    /// Parts of the constraint that were left free, such as one of a tool's schema; in sentences.
    pub warnings: Vec<String>,
    /// Why it ended.
    pub finish_reason: FinishReason,
    /// Tokens in and out.
    pub usage: Usage,
    /// All of how it ended: times, seed and device, too.
    pub done: Done,
}

impl GenerationStream {
    pub(crate) fn new(queue: Arc<Queue>, commands: UnboundedSender<Command>) -> Self {
        Self { queue, commands, ended: false, warnings: Arc::default() }
    }

    /// With what the text is not held to.
    pub(crate) fn with_warnings(mut self, warnings: Arc<[String]>) -> Self {
        self.warnings = warnings;
        self
    }

    /// Parts of the constraint that are left free, such as one of a tool's schema; in
    /// sentences.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// A handle that ends this generation.
    #[must_use]
    pub fn cancel_handle(&self) -> CancelHandle {
        CancelHandle { queue: Arc::clone(&self.queue), commands: self.commands.clone() }
    }

    /// The events as an iterator that waits for each. Not for use inside an async task.
    #[cfg(not(target_family = "wasm"))]
    pub fn blocking(self) -> impl Iterator<Item = Result<Event, Error>> {
        Blocking(self)
    }

    /// Waits for the end.
    ///
    /// # Errors
    ///
    /// As the generation's own.
    #[cfg(not(target_family = "wasm"))]
    pub fn wait(self) -> Result<Completion, Error> {
        pollster::block_on(self.finish())
    }

    /// Collects all events up to the end.
    ///
    /// # Errors
    ///
    /// As the generation's own.
    pub async fn finish(mut self) -> Result<Completion, Error> {
        let (mut prompt, mut text, mut tokens, mut deltas) =
            (vec![], String::new(), vec![], vec![]);
        let (mut reasoning, mut tool_calls) = (String::new(), vec![]);
        while let Some(event) = self.next().await {
            match event? {
                Event::Progress(_) => {}
                Event::Prompt(reported) => prompt = reported.tokens,
                Event::Text(delta) => {
                    text.push_str(&delta.text);
                    reasoning.extend(delta.reasoning.as_deref());
                    delta.tool_calls.iter().for_each(|call| ToolCall::join(&mut tool_calls, call));
                    tokens.push(delta.token);
                    deltas.push(delta);
                }
                Event::Done(done) => {
                    let (finish_reason, usage) = (done.finish_reason, done.usage);
                    return Ok(Completion {
                        prompt,
                        text,
                        reasoning,
                        tokens,
                        deltas,
                        tool_calls,
                        warnings: self.warnings.to_vec(),
                        finish_reason,
                        usage,
                        done,
                    });
                }
            }
        }
        Err(Error::Disposed)
    }

    /// The events that are ready: all at once, without waiting for more.
    pub fn take_ready(&mut self) -> Vec<Result<Event, Error>> {
        let ready = self.queue.take_all();
        self.record(ready.last());
        if !ready.is_empty() {
            self.wake_scheduler();
        }
        ready
    }

    fn record(&mut self, event: Option<&Result<Event, Error>>) {
        self.ended |= matches!(event, Some(Ok(Event::Done(_)) | Err(_)));
    }

    fn wake_scheduler(&self) {
        // A scheduler that is gone needs no telling: the queue says so.
        let _ = self.commands.unbounded_send(Command::Wake);
    }
}

impl Stream for GenerationStream {
    type Item = Result<Event, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let (event, had_credit) = ready!(self.queue.poll_next(context));
        if !had_credit {
            self.wake_scheduler();
        }
        self.record(Some(&event));
        Poll::Ready(Some(event))
    }
}

impl FusedStream for GenerationStream {
    fn is_terminated(&self) -> bool {
        self.ended
    }
}

impl Drop for GenerationStream {
    fn drop(&mut self) {
        self.queue.leave();
        self.wake_scheduler();
    }
}

impl CancelHandle {
    /// Ends the generation. One that has ended already is not changed.
    pub fn cancel(&self) {
        self.queue.cancel();
        let _ = self.commands.unbounded_send(Command::Wake);
    }

    /// Whether the generation is in the batch; otherwise it waits, or was preempted.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.queue.is_running()
    }

    /// Tokens generated so far.
    #[must_use]
    pub fn tokens(&self) -> usize {
        self.queue.tokens()
    }
}

#[cfg(not(target_family = "wasm"))]
struct Blocking(GenerationStream);

#[cfg(not(target_family = "wasm"))]
impl Iterator for Blocking {
    type Item = Result<Event, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        pollster::block_on(self.0.next())
    }
}

#[cfg(test)]
mod tests;
