//! Giving memory back: first what can be done without, then what sequences hold.

use std::{
    sync::{Arc, PoisonError},
    time::Duration,
};

use setun_model::Outputs;
use web_time::Instant;

use super::{Drafter, Owner};
use crate::{
    command::Relieved,
    error::Error,
    pressure::{Pressure, SharedWatch},
};

/// Who tells how short memory is, and when that was asked last.
pub(super) struct Watch {
    shared: SharedWatch,
    every: Duration,
    asked: Option<Instant>,
}

impl Watch {
    pub(super) fn new(shared: SharedWatch, every: Duration) -> Self {
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
        self.shared.lock().unwrap_or_else(PoisonError::into_inner).pressure()
    }
}

impl Owner {
    /// Asks the watch, if it is time, and gives back what there is to give.
    pub(super) async fn heed_watch(&mut self) -> Result<(), Error> {
        let pressure = self.watch.as_mut().and_then(|watch| watch.pressure(Instant::now()));
        match pressure {
            Some(pressure) if self.has_spare(pressure) => self.relieve(pressure).await.map(drop),
            _ => Ok(()),
        }
    }

    pub(super) async fn relieve(&mut self, pressure: Pressure) -> Result<usize, Error> {
        if pressure == Pressure::Critical {
            while let Some(unread) = self.weakest(|running| !running.sequence.demands()) {
                self.preempt(unread);
            }
        }
        self.cache.forget_idle(0);
        let before = self.memory().cache;
        if let Some(mut drafter) = self.drafter.take() {
            drafter.relieve(pressure == Pressure::Critical).await;
            self.drafter = Some(drafter);
        }
        self.shrink(before).await
    }

    /// Holds the cache, and a draft's of as many positions, to so many bytes, but for those of one
    /// context.
    pub(super) async fn limit_cache(&mut self, bytes: usize) -> Result<usize, Error> {
        let (positions, of_model) = (self.model.block_positions(), self.model.block_bytes());
        let of_draft = self.drafter.as_ref().map_or(0, |drafter| drafter.cache_bytes(positions));
        let blocks = bytes / (of_model + of_draft).max(1);
        let blocks = blocks.clamp(self.limits.min_blocks, self.max_blocks);
        let is_refused_more = self.cache.max_blocks() < self.limits.blocks;
        self.limits.blocks = blocks;
        let blocks = if is_refused_more { blocks.min(self.cache.max_blocks()) } else { blocks };
        while let beyond @ 1.. = self.cache.held_blocks().saturating_sub(blocks) {
            let idle = self.cache.idle_blocks();
            if idle > 0 {
                self.cache.forget_idle(idle.saturating_sub(beyond));
            } else if let Some(weakest) = self.weakest(|_| true) {
                self.preempt(weakest);
            } else {
                break;
            }
        }
        self.cache.set_max_blocks(blocks);
        let before = self.memory().cache;
        if let Some(mut drafter) = self.drafter.take() {
            drafter.hold_to(self.limits.blocks.saturating_mul(positions)).await;
            self.drafter = Some(drafter);
        }
        if self.model.memory().cache <= blocks * of_model && self.memory().cache == before {
            return Ok(0);
        }
        self.shrink(before).await
    }

    /// Gives back the memory of blocks that nobody has, and of steps; the bytes that caches have
    /// less than before.
    async fn shrink(&mut self, before: usize) -> Result<usize, Error> {
        self.cache.compact();
        self.model.shrink(&mut self.cache).await?;
        self.grown_blocks = self.cache.high_water_blocks();
        (self.outputs, self.chosen) = (Outputs::default(), vec![]);
        self.metrics.memory = self.memory();
        let bytes = before.saturating_sub(self.metrics.memory.cache);
        self.metrics.add_relief(bytes);
        Ok(bytes)
    }

    /// Whether there is anything to give back.
    fn has_spare(&self, pressure: Pressure) -> bool {
        let held = self.cache.held_blocks() - self.cache.idle_blocks();
        let is_unread = || self.running.iter().any(|running| !running.sequence.demands());
        self.model.memory().cache > held * self.model.block_bytes()
            || self.cache.idle_blocks() > 0
            || self.drafter.as_ref().is_some_and(Drafter::has_spare)
            || (pressure == Pressure::Critical && is_unread())
    }
}

/// Tells what was given back. A failure is the owner's, too.
pub(super) fn tell(relieved: Result<usize, Error>, reply: Relieved) -> Result<(), Error> {
    let (told, failed) = match relieved {
        Ok(bytes) => (Ok(bytes), Ok(())),
        Err(error) => {
            let error = Arc::new(error);
            (Err(Error::Step(Arc::clone(&error))), Err(Error::Step(error)))
        }
    };
    let _ = reply.send(told);
    failed
}
