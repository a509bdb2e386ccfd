//! Metrics, telemetry and profiles of a scheduler.

use std::{sync::Arc, time::Duration};

use setun_clock::{Clock, Instant};

use super::{
    KvCache, Running, StepPlan, WaitQueue, apply_outputs::AppliedStep,
    operation_times::OperationTimes,
};
use crate::{
    engine_info::EngineInfo,
    event::FinishReason,
    metrics::{EngineMetrics, Timed},
    profile::EngineProfile,
    sequence::{Sequence, Wait},
    sync::{Mutex, lock},
    telemetry::{self, Meters},
    timeline::TimedStep,
};

/// Least time between two copies of the metrics while steps run: a copy costs some microseconds, which
/// shows beside the steps of a tiny model.
const PUBLICATION: Duration = Duration::from_millis(1);

/// What a scheduler has counted and timed.
pub(super) struct Stats {
    pub(super) metrics: EngineMetrics,
    /// A copy for readers who do not wait for a step.
    published: PublishedMetrics,
    /// When it was made.
    published_at: Instant,
    pub(super) clock: Clock,
    meters: Meters,
    profile: Option<EngineProfile>,
    timeline: Option<Instant>, // its beginning, where it is kept
    operations: Option<OperationTimes>,
}

/// Metrics as they were after a step of the last millisecond, or the last one.
pub(crate) type PublishedMetrics = Arc<Mutex<EngineMetrics>>;

/// When a step began, its forward pass too, and how long that took.
pub(super) struct StepTimes {
    pub(super) started: Instant,
    pub(super) forward: Instant,
    pub(super) ran: Duration,
}

impl Stats {
    pub(super) fn new(info: &EngineInfo) -> Self {
        let (metrics, meters) = (EngineMetrics::default(), Meters::new(info));
        let clock = Clock::system();
        Self {
            metrics,
            published: Arc::default(),
            published_at: clock.now(),
            clock,
            meters,
            profile: None,
            timeline: None,
            operations: None,
        }
    }

    #[cfg(not(target_family = "wasm"))]
    pub(super) fn set_clock(&mut self, clock: Clock) {
        self.published_at = clock.now();
        self.clock = clock;
    }

    /// A sequence was admitted, for the first time or again.
    pub(super) fn record_admission(&mut self, sequence: &Sequence, is_first: bool) {
        if is_first {
            let waited = self.clock.since(sequence.arrival_time());
            self.record_time(Timed::Queue, waited, sequence.count() as u64);
        }
        self.metrics.add_admission(sequence.cached());
    }

    /// The outputs of a step were applied.
    pub(super) fn record_outputs(&mut self, applied: &AppliedStep) {
        for &wait in &applied.waits {
            self.metrics.tokens += 1;
            match wait {
                Wait::First { request, admission } => {
                    self.record_time(Timed::FirstToken, request, 1);
                    self.record_time(Timed::Prefill, admission, 1);
                }
                Wait::Next(time) => self.record_time(Timed::BetweenTokens, time, 1),
            }
        }
        for &(proposed, accepted) in &applied.drafts {
            self.metrics.add_draft(proposed, accepted);
        }
        self.metrics.failed += applied.failed_samples;
    }

    /// A sequence ends without an error.
    pub(super) fn record_end(&mut self, reason: FinishReason, sequence: &Sequence) {
        self.metrics.add_end(reason);
        if let Some(time) = sequence.decode_time() {
            self.record_time(Timed::Decode, time, 1);
        }
    }

    /// The rows of a step were computed, or of several that followed each other.
    pub(super) fn record_rows(&mut self, plan: &StepPlan) {
        let (rows, prompt_rows) = (plan.batch.rows.len(), plan.prompt_rows);
        let steps = plan.steps();
        telemetry::step(rows, prompt_rows, steps);
        self.metrics.add_step(rows, prompt_rows, steps);
        self.meters.rows(rows, 1);
        self.meters.rows(rows - prompt_rows, steps - 1);
    }

    /// A step has ended, or several.
    pub(super) fn record_step(&mut self, steps: usize, elapsed: Duration) {
        let each = elapsed / u32::try_from(steps).unwrap_or(u32::MAX);
        self.record_time(Timed::Step, each, steps as u64);
    }

    /// Times steps from now on, or no longer; what was timed until now.
    pub(super) fn set_profiled(
        &mut self,
        is_profiled: bool,
        timeline: Option<Instant>,
    ) -> Option<EngineProfile> {
        self.timeline = timeline;
        let next = is_profiled.then(EngineProfile::default);
        std::mem::replace(&mut self.profile, next).filter(|profile| !profile.is_empty())
    }

    /// Keeps the times of operations from now on.
    pub(super) fn keep_operation_times(&mut self) {
        self.operations = Some(OperationTimes::default());
    }

    /// Keeps none any more.
    pub(super) fn forget_operation_times(&mut self) {
        self.operations = None;
    }

    /// Whether the next step is to be timed.
    pub(super) fn is_profiled(&self, is_prefill: bool) -> bool {
        let is_due = |operations: &OperationTimes| operations.is_due(is_prefill);
        self.profile.is_some() || self.operations.as_ref().is_some_and(is_due)
    }

    /// Where steps are timed, or some of them, adds the one that has ended.
    pub(super) fn record_profile(
        &mut self,
        step: Option<&setun_model::Profile>,
        is_prefill: bool,
        times: &StepTimes,
        elapsed: Duration,
    ) {
        if let Some(operations) = &mut self.operations {
            operations.add(step, is_prefill, elapsed, &mut self.metrics.operations);
        }
        let (Some(profile), Some(step)) = (&mut self.profile, step) else { return };
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

    /// Where readers find the metrics.
    pub(super) fn published(&self) -> PublishedMetrics {
        Arc::clone(&self.published)
    }

    /// Whether the copy for readers is old, or has other generations.
    pub(super) fn is_publication_due(&self, queue: &WaitQueue, running: &[Running]) -> bool {
        let now = (queue.count(), sequences(running));
        (self.metrics.waiting, self.metrics.running) != now
            || self.clock.since(self.published_at) >= PUBLICATION
    }

    /// Sets the numbers of what is there now, and reports all to readers and meters.
    pub(super) fn publish(&mut self, queue: &WaitQueue, running: &[Running], kv: &KvCache) {
        let metrics = &mut self.metrics;
        metrics.waiting = queue.count();
        metrics.running = sequences(running);
        metrics.blocks = kv.pool.max_blocks();
        metrics.cached_blocks = kv.pool.idle_blocks();
        metrics.used_blocks = metrics.blocks - kv.pool.free_blocks();
        lock(&self.published).clone_from(&self.metrics);
        self.published_at = self.clock.now();
        self.meters.update(&self.metrics);
    }
}

/// Generations that have a place in the cache.
fn sequences(running: &[Running]) -> usize {
    running.iter().map(|running| running.sequence.count()).sum()
}
