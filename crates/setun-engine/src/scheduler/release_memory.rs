//! Release of memory: first of what can be done without, then of what sequences hold.

use std::{sync::Arc, time::Duration};

use setun_clock::Instant;
use setun_ops::HAS_RECURRENT;

use super::{DraftModelRunner, Scheduler, running::preemption_victim};
use crate::{
    command::ReleasedReply,
    error::Error,
    memory_pressure::{Pressure, SharedMonitor},
};

/// The memory monitor, and when it was asked last.
pub(super) struct PolledMonitor {
    shared: SharedMonitor,
    every: Duration,
    asked: Option<Instant>,
}

impl PolledMonitor {
    pub(super) fn new(shared: SharedMonitor, every: Duration) -> Self {
        Self { shared, every, asked: None }
    }

    /// Time until it is to be asked.
    pub(super) fn left(&self, now: Instant) -> Duration {
        self.asked.map_or(Duration::ZERO, |asked| (asked + self.every).duration_since(now))
    }

    pub(super) fn pressure(&mut self, now: Instant) -> Option<Pressure> {
        if !self.left(now).is_zero() {
            return None;
        }
        self.asked = Some(now);
        crate::sync::lock(&self.shared).pressure()
    }
}

impl Scheduler {
    /// Asks the watch, if it is time, and gives back what there is to give.
    pub(super) async fn poll_monitor(&mut self) -> Result<(), Error> {
        let now = self.stats.clock.now();
        let pressure = self.kv.monitor.as_mut().and_then(|monitor| monitor.pressure(now));
        match pressure {
            Some(pressure) if self.has_spare(pressure) => {
                self.release_memory(pressure).await.map(drop)
            }
            _ => Ok(()),
        }
    }

    pub(super) async fn release_memory(&mut self, pressure: Pressure) -> Result<usize, Error> {
        if pressure == Pressure::Critical {
            while let Some(unread) =
                preemption_victim(&self.running, |running| !running.sequence.demands())
            {
                self.preempt(unread);
            }
        }
        self.kv.pool.forget_idle(0);
        let before = self.model.memory().cache;
        if let Some(mut draft_runner) = self.model.draft.take() {
            draft_runner.release_memory(pressure == Pressure::Critical).await;
            self.model.draft = Some(draft_runner);
        }
        self.shrink(before).await
    }

    /// Holds the cache, and a draft's of as many positions, to this many bytes, but for those of one
    /// context.
    pub(super) async fn limit_cache(&mut self, bytes: usize) -> Result<usize, Error> {
        let (positions, of_model) =
            (self.model.target.block_positions(), self.model.target.block_bytes());
        let draft = self.model.draft.as_ref();
        let of_draft = draft.map_or(0, |draft| draft.cache_bytes(positions));
        let blocks = bytes / (of_model + of_draft).max(1);
        let blocks = blocks.clamp(self.kv.limits.min_blocks, self.kv.max_blocks);
        let is_refused_more = self.kv.is_refused_more();
        self.kv.limits.blocks = blocks;
        let blocks = if is_refused_more { blocks.min(self.kv.pool.max_blocks()) } else { blocks };
        while let beyond @ 1.. = self.kv.pool.held_blocks().saturating_sub(blocks) {
            let idle = self.kv.pool.idle_blocks();
            if idle > 0 {
                self.kv.pool.forget_idle(idle.saturating_sub(beyond));
            } else if self.kv.pool.forget_snapshot() {
            } else if let Some(victim) = preemption_victim(&self.running, |_| true) {
                self.preempt(victim);
            } else {
                break;
            }
        }
        self.kv.pool.set_max_blocks(blocks);
        let before = self.model.memory().cache;
        if let Some(mut draft_runner) = self.model.draft.take() {
            draft_runner.hold_to(self.kv.limits.blocks.saturating_mul(positions)).await;
            self.model.draft = Some(draft_runner);
        }
        if self.model.target.memory().cache <= blocks * of_model
            && self.model.memory().cache == before
        {
            return Ok(0);
        }
        self.shrink(before).await
    }

    /// Gives back memory that a sequence lacks: that of blocks where it lacks a recurrent state, or the other way
    /// round.
    pub(super) async fn compact_for_lacking(&mut self) -> Result<(), Error> {
        let lacking = self.kv.lacking.take().filter(|_| HAS_RECURRENT);
        let Some(blocks) = lacking else { return Ok(()) };
        self.kv.pool.compact_for(blocks);
        self.shrink(0).await.map(drop)
    }

    /// Gives back the memory of blocks that nobody has, and of steps; the bytes that caches have
    /// less than before.
    async fn shrink(&mut self, before: usize) -> Result<usize, Error> {
        self.model.shrink(&mut self.kv.pool).await?;
        self.kv.grown_blocks = self.kv.pool.high_water();
        let memory = self.model.memory();
        let bytes = before.saturating_sub(memory.cache);
        self.stats.metrics.memory = memory;
        self.stats.metrics.add_memory_release(bytes);
        Ok(bytes)
    }

    /// Whether there is anything to give back.
    fn has_spare(&self, pressure: Pressure) -> bool {
        let held = self.kv.pool.held_blocks() - self.kv.pool.idle_blocks();
        let is_unread = || self.running.iter().any(|running| !running.sequence.demands());
        self.model.target.memory().cache > held * self.model.target.block_bytes()
            || self.kv.pool.idle_blocks() > 0
            || self.model.draft.as_ref().is_some_and(DraftModelRunner::has_spare)
            || (pressure == Pressure::Critical && is_unread())
    }
}

/// Replies with what was given back. A failure is the scheduler's, too.
pub(super) fn reply_released(
    released: Result<usize, Error>,
    reply: ReleasedReply,
) -> Result<(), Error> {
    let (reported, failed) = match released {
        Ok(bytes) => (Ok(bytes), Ok(())),
        Err(error) => {
            let error = Arc::new(error);
            (Err(Error::Step(Arc::clone(&error))), Err(Error::Step(error)))
        }
    };
    let _ = reply.send(reported);
    failed
}
