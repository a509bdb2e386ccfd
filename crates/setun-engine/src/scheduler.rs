//! The scheduler: continuous batching of sequences over the one model that it owns.
//!
//! A step takes one row of every sequence that decodes, and fills up with rows of prompts.
//! As logits do not depend on the batch or on how a prompt is cut, both are free choices:
//! the number of prompt rows is set so that a step takes no longer than a target time, which
//! keeps cancelling and other streams responsive. Where a model chooses greedy tokens by itself,
//! so is the number of steps that follow each other without a look at what they gave.
//!
//! A request starts once the cache has room for its prompt, not for all that may come of it. Where
//! memory runs short, a sequence is preempted and begins again from its tokens when there is
//! room: one that nobody reads, then one of the lowest priority, then the one that came last. Its
//! text does not change, for the same reason.

mod admission;
mod apply_outputs;
mod check_outputs;
mod device_recovery;
mod draft_runner;
mod finish;
mod kv;
mod lost_device;
mod maintenance;
mod mask_worker;
mod model_runner;
mod operation_times;
mod plan_step;
mod preemption;
mod release_memory;
mod running;
mod speculation;
mod stats;
mod step_cost;
mod wait_queue;

use std::time::Duration;

use apply_outputs::{AppliedStep, apply_head, apply_outputs};
pub(crate) use draft_runner::DraftModelRunner;
use futures::{
    StreamExt,
    channel::mpsc::UnboundedReceiver,
    future::{Either, LocalBoxFuture, select},
};
use kv::KvCache;
pub(crate) use kv::Limits;
use model_runner::ModelRunner;
use plan_step::{StepPlan, plan_step};
use release_memory::PolledMonitor;
use running::Running;
#[cfg(not(target_family = "wasm"))]
use setun_clock::Clock;
use setun_clock::Instant;
use setun_model::Model;
pub(crate) use stats::PublishedMetrics;
use stats::{Stats, StepTimes};
use wait_queue::WaitQueue;

use crate::{
    command::Command, engine_info::EngineInfo, error::Error, memory_pressure::SharedMonitor,
    parts::ReloadModel, telemetry,
};

/// Time that a step should stay under while somebody waits for it: the next token of another
/// sequence, or a page's worker for its messages.
const STEP_TARGET: Duration = Duration::from_millis(50);

/// Called between steps, so that a host with one thread can do something else, with no time; and
/// with the time to wait for, where there is nothing to do until then.
pub(crate) type Pause = Box<dyn FnMut(Duration) -> LocalBoxFuture<'static, ()>>;

pub(crate) struct Scheduler {
    queue: WaitQueue,
    running: Vec<Running>,
    kv: KvCache,
    model: ModelRunner,
    stats: Stats,
}

impl Scheduler {
    /// The blocks of the limits must hold one whole context.
    pub(crate) fn new(model: Box<dyn Model>, info: EngineInfo, limits: Limits) -> Self {
        let kv = KvCache::new(limits, setun_model::PagedCache::for_model(&*model, limits.blocks));
        let mut stats = Stats::new(&info);
        stats.metrics.memory = model.memory();
        let model = ModelRunner::new(model, info);
        Self { queue: WaitQueue::default(), running: vec![], kv, model, stats }
    }

    /// Has a smaller model propose tokens in place of the texts themselves.
    pub(crate) fn with_draft_runner(mut self, draft: DraftModelRunner) -> Self {
        self.model.draft = Some(draft);
        self.stats.metrics.memory = self.model.memory();
        self
    }

    /// Has a model whose device is lost loaded again.
    pub(crate) fn with_reload(mut self, reload: Box<dyn ReloadModel>) -> Self {
        self.model.device.reload = Some(reload);
        self
    }

    /// Has it ask how short memory is, at most this often.
    pub(crate) fn with_monitor(mut self, monitor: SharedMonitor, every: Duration) -> Self {
        self.kv.monitor = Some(PolledMonitor::new(monitor, every));
        self
    }

    /// Makes it read this clock.
    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn with_clock(mut self, clock: Clock) -> Self {
        self.model.masks.clock = clock.clone();
        self.stats.set_clock(clock);
        self
    }

    /// Has its metrics tell the times of operations.
    pub(crate) fn with_operation_times(mut self) -> Self {
        self.stats.keep_operation_times();
        self
    }

    /// Where readers find the metrics without waiting for a step.
    pub(crate) fn published_metrics(&self) -> PublishedMetrics {
        self.stats.published()
    }

    /// Runs until every handle and stream is gone.
    pub(crate) async fn run(mut self, mut commands: UnboundedReceiver<Command>, mut pause: Pause) {
        loop {
            while let Ok(command) = commands.try_recv() {
                self.take(command);
            }
            self.drop_ended();
            if self.is_idle() || self.stats.is_publication_due(&self.queue, &self.running) {
                self.publish();
            }
            if let Err(error) = self.run_maintenance().await {
                self.recover(error, &mut commands).await;
            }
            let was_idle = self.is_idle();
            let now = self.stats.clock.now();
            self.admit(now);
            self.fail_overdue(now);
            if was_idle && self.is_draft_reload_due() {
                self.reload_draft(&mut commands).await;
            }
            if self.running.iter().any(|running| running.sequence.demands()) {
                if let Err(error) = telemetry::in_step(self.step()).await {
                    self.recover(error, &mut commands).await;
                }
                pause(Duration::ZERO).await;
            } else if !self.wait(now, &mut commands, &mut pause).await {
                return;
            }
        }
    }

    /// Waits for a command, or for the next time at which something is to be done without one.
    /// False where no sender is left. The time is that of the last admission: what
    /// was not due then has an alarm now.
    async fn wait(
        &mut self,
        now: Instant,
        commands: &mut UnboundedReceiver<Command>,
        pause: &mut Pause,
    ) -> bool {
        let command = match self.alarm(now) {
            None => commands.next().await,
            Some(time) => match select(commands.next(), self.timer(now, time, pause)).await {
                Either::Left((command, _)) => command,
                Either::Right(_) => return true,
            },
        };
        command.map(|command| self.take(command)).is_some()
    }

    /// The end of a wait: as the host's time tells it, or a clock that stands still until it is moved.
    fn timer(
        &self,
        now: Instant,
        time: Duration,
        pause: &mut Pause,
    ) -> LocalBoxFuture<'static, ()> {
        #[cfg(not(target_family = "wasm"))]
        if let Some(arrival) = self.stats.clock.arrival(now + time) {
            return Box::pin(arrival);
        }
        let _ = now;
        pause(time)
    }

    fn take(&mut self, command: Command) {
        match command {
            Command::Generate(request) => {
                self.queue.enqueue(*request, self.kv.limits.max_concurrent);
            }
            Command::Wake => {}
            Command::Profile { profiled, timeline, reply } => {
                let _ = reply.send(self.stats.set_profiled(profiled, timeline));
            }
            Command::Memory(reply) => {
                let _ = reply.send(self.model.memory());
            }
            Command::ResetPrefixCache => self.kv.pool.forget_idle(0),
            Command::Maintenance(task) => self.queue.maintenance.push_back(task),
        }
    }

    /// Fails with what the model failed with; it has ended what failed otherwise.
    async fn step(&mut self) -> Result<(), Error> {
        let is_prefill = self
            .running
            .iter()
            .any(|running| running.sequence.generated() == 0 && running.sequence.demands());
        self.model.set_profiled(self.stats.is_profiled(is_prefill));
        self.compact_for_lacking().await?;
        let multi_step = plan_step(&mut self.running, &mut self.model.budget());
        if multi_step.is_none() {
            self.propose_drafts().await;
        }
        let started = self.stats.clock.now();
        self.reserve_all(multi_step.unwrap_or(1));
        let vocabulary = self.model.target.vocab_size();
        let plan = StepPlan::new(&mut self.running, multi_step, vocabulary);
        if plan.batch.rows.is_empty() {
            return Ok(()); // none has room, which has ended them, or has them wait for it
        }
        let forward = self.stats.clock.now();
        self.model.forward(&plan, &mut self.kv.pool).await?;
        let times = StepTimes { started, forward, ran: self.stats.clock.since(forward) };
        self.record_growth();
        self.model.masks.await_all(&mut self.running).await;
        let outputs = &self.model.outputs;
        let mut applied = apply_outputs(&mut self.running, &mut self.kv, &plan, outputs)?;
        let decided = self.decide_left(&mut applied, vocabulary).await;
        self.stats.record_outputs(&applied);
        self.stats.record_rows(&plan);
        self.end_all(applied.ended);
        self.shorten_full();
        decided?;
        // Tokens are progress; part of a long prompt is none.
        self.model.device.is_reloaded &= plan.batch.wanted() == 0;
        let expected = self.model.step_cost.step(self.running.len());
        self.model.masks.prepare_all(&mut self.running, expected, self.model.info.backend);
        self.record_step(&plan, &times);
        Ok(())
    }

    /// Makes the head run alone for all rows that are undecided, until none is: after one of a draft
    /// the next may be.
    async fn decide_left(
        &mut self,
        applied: &mut AppliedStep,
        vocabulary: usize,
    ) -> Result<(), Error> {
        while !applied.undecided.is_empty() {
            let rows = applied.undecided.iter().map(|undecided| undecided.row);
            self.model.run_head(rows, vocabulary).await?;
            apply_head(&mut self.running, &mut self.kv, &self.model.outputs, applied);
        }
        Ok(())
    }

    /// Lets readers have the metrics of now.
    fn publish(&mut self) {
        self.stats.publish(&self.queue, &self.running, &self.kv);
    }

    /// The step under way has run: the cache may have grown for it.
    fn record_growth(&mut self) {
        let blocks = self.kv.pool.high_water();
        if blocks > self.kv.grown_blocks {
            self.kv.grown_blocks = blocks;
            self.stats.metrics.memory = self.model.memory();
        }
    }

    fn record_step(&mut self, plan: &StepPlan, times: &StepTimes) {
        let elapsed = self.stats.clock.since(times.started);
        self.stats.record_step(plan.steps(), elapsed);
        let profile = self.model.target.profile();
        if self.model.is_profiled() && profile.is_none() {
            self.stats.forget_operation_times(); // the device times none
        }
        self.stats.record_profile(profile, plan.is_prefill, times, elapsed);
        let is_profiled = self.model.is_profiled();
        let (rows, cost) = (plan.batch.rows.len(), &mut self.model.step_cost);
        match plan.multi_step.filter(|_| !is_profiled).map(u32::try_from) {
            // A timed step is a single one, which says nothing of those that follow each other.
            None => cost.record(rows, elapsed),
            Some(steps) => {
                let step = elapsed / steps.unwrap_or(u32::MAX).max(1);
                cost.record_multi_step(rows, step, self.model.target.max_multi_steps());
            }
        }
    }
}

#[cfg(test)]
mod device_recovery_tests;
#[cfg(test)]
mod full_logits_tests;
#[cfg(test)]
mod machine_tests;
#[cfg(test)]
mod multi_step_tests;
#[cfg(test)]
mod release_memory_tests;
#[cfg(test)]
mod speculation_tests;
#[cfg(test)]
mod test_support;
#[cfg(test)]
mod tests;
