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
mod beam_rows;
mod check_outputs;
mod device_recovery;
mod draft_runner;
mod limits;
mod lost_device;
mod maintenance;
mod mask_worker;
mod multi_step;
mod plan_step;
mod record;
mod release_memory;
mod reserve;
mod speculation;
mod step_cost;
mod wait_queue;

use std::{task::Poll, time::Duration};

use check_outputs::{check_argmax, check_outputs};
pub(crate) use draft_runner::DraftModelRunner;
use futures::{
    StreamExt,
    channel::mpsc::UnboundedReceiver,
    future::{Either, LocalBoxFuture, select},
    poll,
};
pub(crate) use limits::Limits;
use maintenance::MaintenanceQueue;
use mask_worker::MaskWorker;
use plan_step::{Budget, batch_rows, plan_step, take_turns};
use record::StepTimes;
use release_memory::PolledMonitor;
use setun_model::{Batch, Model, Outputs, PagedCache, RequestedOutput, SequenceId};
use step_cost::StepCost;
use wait_queue::WaitQueue;
use web_time::Instant;

use crate::{
    command::Command,
    engine_info::EngineInfo,
    error::Error,
    event::FinishReason,
    memory_pressure::SharedMonitor,
    metrics::EngineMetrics,
    parts::ReloadModel,
    profile::EngineProfile,
    sequence::Sequence,
    telemetry::{self, Meters},
};

/// Time that a step should stay under while somebody waits for it: the next token of another
/// sequence, or a page's worker for its messages.
const STEP_TARGET: Duration = Duration::from_millis(50);

/// How a sequence ended: why, and by which stop string.
type End = Result<(FinishReason, Option<String>), Error>;

/// Called between steps, so that a host with one thread can do something else, with no time; and
/// with the time to wait for, where there is nothing to do until then.
pub(crate) type Pause = Box<dyn FnMut(Duration) -> LocalBoxFuture<'static, ()>>;

pub(crate) struct Scheduler {
    model: Box<dyn Model>,
    report: EngineInfo,
    limits: Limits,
    max_blocks: usize, // that the limits had at first
    cache: PagedCache,
    grown_blocks: usize, // with which a step has run
    waiting: WaitQueue,
    running: Vec<Running>,
    maintenance: MaintenanceQueue,
    mask_worker: MaskWorker,
    draft_runner: Option<DraftModelRunner>,
    fingerprint: Option<[u8; 32]>, // of the model, once it was asked for
    outputs: Outputs,
    argmax_tokens: Vec<u32>, // in place of outputs, [steps, wanted rows]
    multi_steps: usize,      // steps that may follow each other
    step_cost: StepCost,
    metrics: EngineMetrics,
    meters: Meters,
    profile: Option<EngineProfile>,
    timeline: Option<Instant>,      // its beginning, where it is kept
    monitor: Option<PolledMonitor>, // over the system's memory
    reload: Option<Box<dyn ReloadModel>>,
    is_device_lost: bool, // the model's device, and it was not made anew
    is_reloaded: bool,    // and no token has come since
    is_pooling: bool,     // in the step under way
}

/// A sequence with a place in the cache.
struct Running {
    sequence: Sequence,
    kv_slot: SequenceId,
    beam_rows: Vec<SequenceId>,         // of the other rows of a search
    demands: bool,                      // another token, for the step under way
    rows: usize,                        // of the step under way
    reported: usize,                    // of these, rows that tell of the prompt
    draft: Vec<(u32, RequestedOutput)>, // the last of these rows, and guesses after it; or empty
}

impl Running {
    /// Whether the step under way has rows of this one's prompt.
    fn is_prefill(&self) -> bool {
        self.rows > 0 && self.sequence.generated() == 0
    }
}

impl Scheduler {
    /// The blocks of the limits must hold one whole context.
    pub(crate) fn new(model: Box<dyn Model>, report: EngineInfo, limits: Limits) -> Self {
        let cache = limits.cache(&*model);
        let metrics = EngineMetrics { memory: model.memory(), ..EngineMetrics::default() };
        let meters = Meters::new(&report);
        Self {
            model,
            report,
            limits,
            max_blocks: limits.blocks,
            cache,
            grown_blocks: 0,
            waiting: WaitQueue::default(),
            running: vec![],
            maintenance: MaintenanceQueue::new(),
            mask_worker: MaskWorker::default(),
            draft_runner: None,
            fingerprint: None,
            outputs: Outputs::default(),
            argmax_tokens: vec![],
            multi_steps: 1,
            step_cost: StepCost::default(),
            metrics,
            meters,
            profile: None,
            timeline: None,
            monitor: None,
            reload: None,
            is_device_lost: false,
            is_reloaded: false,
            is_pooling: false,
        }
    }

    /// Has a model whose device is lost made anew.
    pub(crate) fn with_reload(self, reload: Box<dyn ReloadModel>) -> Self {
        Self { reload: Some(reload), ..self }
    }

    /// Has it ask how short memory is, so often at most.
    pub(crate) fn with_monitor(self, monitor: SharedMonitor, every: Duration) -> Self {
        Self { monitor: Some(PolledMonitor::new(monitor, every)), ..self }
    }

    /// Runs until every handle and stream is gone.
    pub(crate) async fn run(mut self, mut commands: UnboundedReceiver<Command>, mut pause: Pause) {
        loop {
            while let Ok(command) = commands.try_recv() {
                self.take(command);
            }
            self.drop_ended();
            self.publish();
            if let Err(error) = self.run_maintenance().await {
                self.recover(error, &mut commands).await;
            }
            let was_idle = self.is_idle();
            self.admit();
            if was_idle && self.is_draft_reload_due() {
                self.reload_draft(&mut commands).await;
            }
            if self.running.iter().any(|running| running.sequence.demands()) {
                if let Err(error) = telemetry::in_step(self.step()).await {
                    self.recover(error, &mut commands).await;
                }
                pause(Duration::ZERO).await;
            } else if !self.wait(&mut commands, &mut pause).await {
                return;
            }
        }
    }

    /// Waits for a command, or for the next time at which something is to be done without one.
    /// False where nobody is left who could tell anything.
    async fn wait(&mut self, commands: &mut UnboundedReceiver<Command>, pause: &mut Pause) -> bool {
        let command = match self.alarm() {
            None => commands.next().await,
            Some(time) => match select(commands.next(), pause(time)).await {
                Either::Left((command, _)) => command,
                Either::Right(_) => return true,
            },
        };
        command.map(|command| self.take(command)).is_some()
    }

    fn take(&mut self, command: Command) {
        match command {
            Command::Generate(request) => {
                let sequence = self.waiting.accept(*request);
                self.enqueue_if_fit(sequence);
            }
            Command::Wake => {}
            Command::Profile { profiled, timeline, reply } => {
                let timed = self.profile.take().filter(|profile| !profile.is_empty());
                self.profile = profiled.then(EngineProfile::default);
                self.timeline = timeline;
                self.model.set_profiled(profiled);
                let _ = reply.send(timed);
            }
            Command::Memory(reply) => {
                let _ = reply.send(self.memory());
            }
            Command::ResetPrefixCache => self.cache.forget_idle(0),
            Command::Maintenance(task) => self.maintenance.push_back(task),
        }
    }

    /// Fails with what the model failed with; it has ended what failed otherwise.
    async fn step(&mut self) -> Result<(), Error> {
        // Once, as a consumer may change it at any time.
        for running in &mut self.running {
            running.demands = running.sequence.demands();
        }
        take_turns(&mut self.running, &mut self.is_pooling);
        let multi_step = self.plan_multi_step();
        let budget = Budget { max_rows: self.model.max_rows(), step_cost: &self.step_cost };
        plan_step(&mut self.running, &budget);
        if multi_step.is_none() {
            self.propose_drafts().await;
        }
        let started = Instant::now();
        self.reserve_all(multi_step.unwrap_or(1));
        let vocabulary = self.model.vocab_size();
        let (batch, prompt_rows) = batch_rows(&mut self.running, multi_step, vocabulary);
        if batch.rows.is_empty() {
            return Ok(()); // none of them has room, which has ended them
        }
        let is_prefill = self.running.iter().any(Running::is_prefill);
        let rows = batch.rows.len();
        let forward = Instant::now();
        self.forward(&batch, multi_step).await?;
        let times = StepTimes { started, forward, ran: forward.elapsed() };
        let wanted = batch.wanted();
        match multi_step {
            Some(steps) => check_argmax(&self.argmax_tokens, steps * wanted, vocabulary)?,
            None => check_outputs(&batch, &self.outputs, vocabulary)?,
        }
        self.record_growth();
        // Tokens are progress; part of a long prompt is none.
        self.is_reloaded &= wanted == 0;
        self.await_masks().await;
        match multi_step {
            Some(steps) => self.apply_multi_step(steps),
            None => self.apply_outputs(),
        }
        self.shorten_full();
        self.prepare_masks();
        let elapsed = started.elapsed();
        self.record_step((rows, prompt_rows), multi_step.unwrap_or(1), elapsed);
        self.record_profile(is_prefill, &times, elapsed);
        self.record_step_cost(rows, multi_step, elapsed);
        Ok(())
    }

    /// Has the model make the step. Masks that are left are computed while a device has it.
    async fn forward(&mut self, batch: &Batch, multi_step: Option<usize>) -> Result<(), Error> {
        let mut step = match multi_step {
            Some(steps) => {
                self.model.run_multi_step(batch, &mut self.cache, steps, &mut self.argmax_tokens)
            }
            None => self.model.forward(batch, &mut self.cache, &mut self.outputs),
        };
        let result = match poll!(&mut step) {
            Poll::Ready(result) => result,
            Poll::Pending => {
                self.mask_worker.compute_left();
                step.await
            }
        };
        Ok(result?)
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
mod tests;
