//! Records of a scheduler's work for metrics, telemetry and profiles.

use std::time::Duration;

use web_time::Instant;

use super::Scheduler;
use crate::{
    metrics::{EngineMetrics, Timed},
    sequence::{Sequence, Wait},
    telemetry,
    timeline::TimedStep,
};

/// When a step began, its forward pass too, and how long that took.
pub(super) struct StepTimes {
    pub(super) started: Instant,
    pub(super) forward: Instant,
    pub(super) ran: Duration,
}

impl Scheduler {
    /// A sequence has been given a place in the cache, with this many of its tokens in it.
    /// How many of them serve it.
    pub(super) fn record_admission(&mut self, sequence: &mut Sequence, cached: usize) -> usize {
        if sequence.enter(cached) {
            let waited = Instant::now().saturating_duration_since(sequence.asked());
            self.record_time(Timed::Queue, waited, sequence.count() as u64);
        }
        self.metrics.add_admission(sequence.cached());
        sequence.cached()
    }

    /// A sequence may have had a token.
    pub(super) fn record_token(&mut self, index: usize) {
        let (timed, time) = match self.running[index].sequence.take_wait() {
            None => return,
            Some(Wait::First(time)) => (Timed::FirstToken, time),
            Some(Wait::Next(time)) => (Timed::BetweenTokens, time),
        };
        self.metrics.tokens += 1;
        self.record_time(timed, time, 1);
    }

    /// The step under way has run: the cache may have grown for it.
    pub(super) fn record_growth(&mut self) {
        let blocks = self.cache.high_water_blocks();
        if blocks > self.grown_blocks {
            self.grown_blocks = blocks;
            self.metrics.memory = self.memory();
        }
    }

    /// A step of some rows has ended, some of them of prompts, or several that followed
    /// each other.
    pub(super) fn record_step(
        &mut self,
        (rows, prompt_rows): (usize, usize),
        steps: usize,
        elapsed: Duration,
    ) {
        telemetry::step(rows, prompt_rows, steps);
        self.metrics.add_step(rows, prompt_rows, steps);
        self.meters.rows(rows, 1);
        self.meters.rows(rows - prompt_rows, steps - 1);
        let each = elapsed / u32::try_from(steps).unwrap_or(u32::MAX);
        self.record_time(Timed::Step, each, steps as u64);
    }

    /// Where steps are timed, adds the one that has ended.
    pub(super) fn record_profile(
        &mut self,
        is_prefill: bool,
        times: &StepTimes,
        elapsed: Duration,
    ) {
        let (Some(profile), Some(step)) = (&mut self.profile, self.model.profile()) else { return };
        let phase = if is_prefill { &mut profile.prefill } else { &mut profile.decode };
        phase.add(elapsed, step);
        let Some(begin) = self.timeline else { return };
        profile.timeline.push(TimedStep {
            device: 0,
            is_prefill,
            rows: step.rows,
            begun: times.started.saturating_duration_since(begin),
            time: elapsed,
            forward_begun: times.forward.saturating_duration_since(begin),
            forward_time: times.ran,
            ops: step.timeline.clone(),
        });
    }

    fn record_time(&mut self, timed: Timed, time: Duration, times: u64) {
        self.metrics.add_time(timed, time, times);
        self.meters.time(timed, time, times);
    }

    /// Tells meters what was counted.
    pub(super) fn publish(&mut self) {
        self.current_metrics();
        self.meters.update(&self.metrics);
    }

    /// What was counted until now.
    pub(super) fn current_metrics(&mut self) -> &EngineMetrics {
        let metrics = &mut self.metrics;
        metrics.waiting = self.waiting.count();
        metrics.running = self.running.iter().map(|running| running.sequence.count()).sum();
        metrics.blocks = self.cache.max_blocks();
        metrics.cached_blocks = self.cache.idle_blocks();
        metrics.used_blocks = metrics.blocks - self.cache.free_blocks();
        metrics
    }
}
