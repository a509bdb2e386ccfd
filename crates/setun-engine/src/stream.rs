//! The stream of one generation, and the queue between it and the engine's owner.

use std::{
    collections::VecDeque,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use futures::{Stream, StreamExt, channel::mpsc::UnboundedSender, stream::FusedStream};
use serde::{Deserialize, Serialize};

use crate::{
    command::Command,
    error::Error,
    event::{Done, Event, TextDelta},
};

/// Events that wait for the consumer before the generation pauses, unless told otherwise.
pub(crate) const DEFAULT_BUFFER: usize = 64;

/// What becomes of a generation whose consumer does not keep up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BackPressure {
    /// It waits for its consumer. Whoever else runs goes on, and may take its memory.
    #[default]
    Pause,
    /// It ends, with [`FinishReason::Aborted`](crate::FinishReason::Aborted).
    End,
}

/// A running generation: a stream of [`Event`]s, the last of which is [`Event::Done`].
///
/// It runs ahead of its consumer by some tokens and then waits. Dropping it ends the
/// generation and frees its cache.
#[derive(Debug)]
pub struct GenerationStream {
    queue: Arc<Queue>,
    commands: UnboundedSender<Command>,
    ended: bool,
}

/// Ends a generation from elsewhere. The stream then yields a last event, with
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
    /// The prompt's tokens, if they were to be told.
    pub prompt: Vec<TextDelta>,
    /// The whole text.
    pub text: String,
    /// The tokens behind it.
    pub tokens: Vec<u32>,
    /// Each of them with its part of the text, and its log-probabilities if asked for.
    pub deltas: Vec<TextDelta>,
    /// How it ended.
    pub done: Done,
}

impl GenerationStream {
    pub(crate) fn new(queue: Arc<Queue>, commands: UnboundedSender<Command>) -> Self {
        Self { queue, commands, ended: false }
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
        while let Some(event) = self.next().await {
            match event? {
                Event::Prompt(told) => prompt = told.tokens,
                Event::Text(delta) => {
                    text.push_str(&delta.text);
                    tokens.push(delta.token);
                    deltas.push(delta);
                }
                Event::Done(done) => return Ok(Completion { prompt, text, tokens, deltas, done }),
            }
        }
        Err(Error::Disposed)
    }

    /// The events that are ready: all at once, without waiting for more.
    pub fn take_ready(&mut self) -> Vec<Result<Event, Error>> {
        let ready: Vec<_> = self.queue.lock().events.drain(..).collect();
        self.note(ready.last());
        if !ready.is_empty() {
            self.tell_owner();
        }
        ready
    }

    fn note(&mut self, event: Option<&Result<Event, Error>>) {
        self.ended |= matches!(event, Some(Ok(Event::Done(_)) | Err(_)));
    }

    fn tell_owner(&self) {
        // An owner that is gone needs no telling: the queue says so.
        let _ = self.commands.unbounded_send(Command::Wake);
    }
}

impl Stream for GenerationStream {
    type Item = Result<Event, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let event = {
            let mut state = self.queue.lock();
            let had_credit = state.has_credit();
            match state.events.pop_front() {
                Some(event) => (event, had_credit),
                None if state.closed => (Err(Error::Disposed), true),
                None => {
                    state.waker = Some(context.waker().clone());
                    return Poll::Pending;
                }
            }
        };
        let (event, had_credit) = event;
        if !had_credit {
            self.tell_owner();
        }
        self.note(Some(&event));
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
        self.queue.lock().dropped = true;
        self.tell_owner();
    }
}

impl CancelHandle {
    /// Ends the generation. One that has ended already is not changed.
    pub fn cancel(&self) {
        self.queue.lock().cancelled = true;
        let _ = self.commands.unbounded_send(Command::Wake);
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

/// The queue between the owner and a stream.
#[derive(Debug)]
pub(crate) struct Queue {
    state: Mutex<QueueState>,
}

#[derive(Debug)]
struct QueueState {
    buffer: usize,
    back_pressure: BackPressure,
    events: VecDeque<Result<Event, Error>>,
    waker: Option<Waker>,
    cancelled: bool,
    dropped: bool,
    closed: bool,
}

/// What the consumer wants of its generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Demand {
    /// More events.
    More,
    /// None for now.
    Pause,
    /// The end, and to be told of it.
    Cancel,
    /// Nothing any more.
    Gone,
}

impl QueueState {
    fn has_credit(&self) -> bool {
        self.events.len() < self.buffer
    }
}

impl Default for Queue {
    fn default() -> Self {
        Self::new(DEFAULT_BUFFER, BackPressure::Pause)
    }
}

impl Queue {
    /// With room for so many events.
    pub(crate) fn new(buffer: usize, back_pressure: BackPressure) -> Self {
        let state = QueueState {
            buffer,
            back_pressure,
            events: VecDeque::new(),
            waker: None,
            cancelled: false,
            dropped: false,
            closed: false,
        };
        Self { state: Mutex::new(state) }
    }

    pub(crate) fn push(&self, event: Result<Event, Error>) {
        let waker = {
            let mut state = self.lock();
            state.events.push_back(event);
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    pub(crate) fn demand(&self) -> Demand {
        let state = self.lock();
        if state.dropped {
            Demand::Gone
        } else if state.cancelled {
            Demand::Cancel
        } else if state.has_credit() {
            Demand::More
        } else if state.back_pressure == BackPressure::End {
            Demand::Cancel
        } else {
            Demand::Pause
        }
    }

    /// Nothing more will come.
    pub(crate) fn close(&self) {
        let waker = {
            let mut state = self.lock();
            state.closed = true;
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    // The state is consistent between any two statements, so a panic elsewhere spoils nothing.
    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
