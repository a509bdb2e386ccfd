//! The bounded queue of events between the scheduler and a stream.

use std::{
    collections::VecDeque,
    task::{Context, Poll, Waker},
};

use crate::{
    error::Error,
    event::{Event, PromptProgress},
    options::BackPressure,
    sync::{Mutex, MutexGuard, lock},
};

/// The queue between the scheduler and a stream.
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
    progress: Progress,
}

/// How far the generation is.
#[derive(Debug, Default)]
struct Progress {
    is_running: bool,
    tokens: usize, // that were pushed
}

/// What the consumer wants of its generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Demand {
    /// More events.
    More,
    /// None for now.
    Pause,
    /// The end, and the event of it.
    Cancel,
    /// Nothing any more.
    Gone,
}

impl QueueState {
    fn has_credit(&self) -> bool {
        self.events.len() < self.buffer
    }
}

#[cfg(test)]
impl Default for Queue {
    fn default() -> Self {
        Self::new(64, BackPressure::Pause)
    }
}

impl Queue {
    /// With room for this many events.
    pub(crate) fn new(buffer: usize, back_pressure: BackPressure) -> Self {
        let state = QueueState {
            buffer,
            back_pressure,
            events: VecDeque::new(),
            waker: None,
            cancelled: false,
            dropped: false,
            closed: false,
            progress: Progress::default(),
        };
        Self { state: Mutex::new(state) }
    }

    pub(crate) fn push(&self, event: Result<Event, Error>) {
        let waker = {
            let mut state = self.lock();
            state.progress.tokens += usize::from(event.as_ref().is_ok_and(Event::is_token));
            state.events.push_back(event);
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Adds an event of progress in place of one that nobody has taken.
    pub(crate) fn push_progress(&self, progress: PromptProgress) {
        if let Some(Ok(Event::Progress(last))) = self.lock().events.back_mut() {
            *last = progress;
            return;
        }
        self.push(Ok(Event::Progress(progress)));
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

    /// The next event, and whether the producer was free to go on before it was taken.
    pub(crate) fn poll_next(&self, context: &Context<'_>) -> Poll<(Result<Event, Error>, bool)> {
        let mut state = self.lock();
        let had_credit = state.has_credit();
        match state.events.pop_front() {
            Some(event) => Poll::Ready((event, had_credit)),
            None if state.closed => Poll::Ready((Err(Error::Disposed), true)),
            None => {
                state.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }

    /// All events that are there.
    pub(crate) fn take_all(&self) -> Vec<Result<Event, Error>> {
        self.lock().events.drain(..).collect()
    }

    /// The generation has a place in the batch, or has lost it.
    pub(crate) fn set_running(&self, is_running: bool) {
        self.lock().progress.is_running = is_running;
    }

    /// Whether it has a place in the batch.
    pub(crate) fn is_running(&self) -> bool {
        self.lock().progress.is_running
    }

    /// How many tokens were pushed.
    pub(crate) fn tokens(&self) -> usize {
        self.lock().progress.tokens
    }

    /// The consumer wants the end, and to see it.
    pub(crate) fn cancel(&self) {
        self.lock().cancelled = true;
    }

    /// The consumer is gone.
    pub(crate) fn leave(&self) {
        self.lock().dropped = true;
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

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        lock(&self.state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress(computed_tokens: usize) -> PromptProgress {
        PromptProgress { computed_tokens, prompt_tokens: 9 }
    }

    #[test]
    fn progress_replaces_progress_that_nobody_has_taken() {
        let queue = Queue::default();
        queue.push_progress(progress(3));
        queue.push_progress(progress(6));
        let taken = queue.take_all();
        assert!(matches!(taken[..], [Ok(Event::Progress(last))] if last == progress(6)));
        queue.push(Err(Error::Disposed));
        queue.push_progress(progress(9));
        let taken = queue.take_all();
        assert!(matches!(taken[..], [Err(_), Ok(Event::Progress(last))] if last == progress(9)));
    }
}
