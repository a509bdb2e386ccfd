//! Cache residency of a sequence and its samples, and the latency of its tokens.

use std::{sync::Arc, time::Duration};

use setun_clock::Instant;

use super::Sequence;
use crate::{error::Error, telemetry::WaitReason};

/// What the consumer of a token has waited for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wait {
    /// The first token, since the request and since it was admitted.
    First { request: Duration, admission: Duration },
    /// Another, since the one before.
    Next(Duration),
}

impl Sequence {
    /// The generations that begin where this one's prompt ends. They have its place in line, and
    /// as much of the prompt in the cache.
    pub(crate) fn take_samples(&mut self) -> Vec<Self> {
        let Self { arrival, cached_tokens, cached, entered, .. } = *self;
        let beam_row =
            |request| Self { cached_tokens, cached, entered, ..Self::new(request, arrival) };
        std::mem::take(&mut self.request.samples).into_iter().map(beam_row).collect()
    }

    /// Whether samples wait for its prompt.
    pub(crate) fn has_samples(&self) -> bool {
        !self.request.samples.is_empty()
    }

    /// Others are to begin where this one's prompt ends.
    pub(crate) fn set_samples(&mut self, samples: Vec<Self>) {
        self.request.samples = samples.into_iter().map(|sample| sample.request).collect();
    }

    /// It has a place in the cache, with this many of its tokens, not all of which need serve it.
    /// Whether it is its first.
    pub(crate) fn enter(&mut self, cached: usize) -> bool {
        self.request.trace.admitted(cached);
        self.request.samples.iter_mut().for_each(|sample| sample.trace.admitted(cached));
        self.set_running(true);
        let most = self.task.beam_mut().map_or(usize::MAX, super::beam_search::Search::enter);
        self.cached = cached.min(most);
        let is_first = self.entered.is_none();
        self.entered = self.entered.or_else(|| Some(self.request.clock.now()));
        if is_first {
            self.cached_tokens = self.cached.min(self.request.prompt.len());
        }
        is_first
    }

    /// It waits still.
    pub(crate) fn wait(&mut self, reason: WaitReason) {
        self.request.trace.waiting(reason);
        self.request.samples.iter_mut().for_each(|sample| sample.trace.waiting(reason));
    }

    /// When it has waited too long for its first place in the cache.
    pub(crate) fn queue_deadline(&self) -> Option<Instant> {
        let limit = self.request.queue_timeout.filter(|_| self.entered.is_none())?;
        self.request.arrival_time.checked_add(limit)
    }

    pub(crate) fn is_overdue(&self, now: Instant) -> bool {
        self.queue_deadline().is_some_and(|deadline| deadline <= now)
    }

    /// Ends it for that, with its samples.
    pub(crate) fn fail_in_queue(&mut self) {
        let limit = self.request.queue_timeout.unwrap_or_default();
        self.fail_all(&Arc::new(Error::QueueTimeout { limit }));
    }

    /// Whether it has had a place in the cache.
    pub(crate) fn has_entered(&self) -> bool {
        self.entered.is_some()
    }

    /// It has lost its place in the cache.
    pub(crate) fn leave(&self) {
        self.request.trace.preempted(self.cached);
        self.set_running(false);
    }

    fn set_running(&self, is_running: bool) {
        let samples = self.request.samples.iter();
        samples.for_each(|sample| sample.queue.set_running(is_running));
        self.queue().set_running(is_running);
    }

    /// Time from the first token to the last; none before the first.
    pub(crate) fn decode_time(&self) -> Option<Duration> {
        Some(self.last_token?.saturating_duration_since(self.first_token?))
    }

    /// What the last token was waited for, once.
    pub(crate) fn take_wait(&mut self) -> Option<Wait> {
        self.wait.take()
    }
}
