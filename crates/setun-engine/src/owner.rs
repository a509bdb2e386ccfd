//! The one owner of a model: it steps a list of sequences, and nobody else touches the model.
//!
//! A step takes one row of every sequence that decodes, and fills up with rows of prompts.
//! As logits do not depend on the batch or on how a prompt is cut, both are free choices:
//! the number of prompt rows is set so that a step takes no longer than a target time, which
//! keeps cancelling and other streams responsive. Where a model chooses greedy tokens by itself,
//! so is the number of steps that follow each other without a look at what they gave.
//!
//! A request starts once the cache has room for its prompt, not for all that may come of it. Where
//! memory runs short, a sequence gives up its place and begins again from its tokens when there is
//! room: one that nobody reads, then one of the lowest priority, then the one that came last. Its
//! text does not change, for the same reason.

mod accept;
mod admission;
mod batch;
mod beams;
mod chores;
mod drafter;
mod drafts;
mod following;
mod limits;
mod lost;
mod masks;
mod noted;
mod recovery;
mod relief;
mod row_times;

use std::{task::Poll, time::Duration};

use chores::Chores;
pub(crate) use drafter::Drafter;
use futures::{
    StreamExt,
    channel::mpsc::UnboundedReceiver,
    future::{Either, LocalBoxFuture, select},
    poll,
};
pub(crate) use limits::Limits;
use masks::Masks;
use noted::StepTimes;
use relief::Watch;
use row_times::RowTimes;
use setun_model::{Batch, Model, Outputs, PagedCache, RequestedOutput, SequenceId};
use web_time::Instant;

use crate::{
    command::Command,
    engine_info::EngineInfo,
    error::Error,
    event::FinishReason,
    metrics::EngineMetrics,
    parts::ReloadModel,
    pressure::SharedWatch,
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
pub(crate) type Pacer = Box<dyn FnMut(Duration) -> LocalBoxFuture<'static, ()>>;

pub(crate) struct Owner {
    model: Box<dyn Model>,
    report: EngineInfo,
    limits: Limits,
    max_blocks: usize, // that the limits had at first
    cache: PagedCache,
    grown_blocks: usize,    // with which a step has run
    waiting: Vec<Sequence>, // those that go first come first
    running: Vec<Running>,
    arrivals: u64,
    chores: Chores,
    masks: Masks,
    drafter: Option<Drafter>,
    fingerprint: Option<[u8; 32]>, // of the model, once it was asked for
    outputs: Outputs,
    chosen: Vec<u32>, // in place of outputs, [steps, wanted rows]
    following: usize, // steps that may follow each other
    row_times: RowTimes,
    metrics: EngineMetrics,
    meters: Meters,
    profile: Option<EngineProfile>,
    timeline: Option<Instant>, // its beginning, where it is kept
    watch: Option<Watch>,      // over the system's memory
    revival: Option<Box<dyn ReloadModel>>,
    is_lost: bool,    // the model's device, and it was not made anew
    is_revived: bool, // and no token has come since
    is_pooling: bool, // in the step under way
}

/// A sequence with a place in the cache.
struct Running {
    sequence: Sequence,
    place: SequenceId,
    twins: Vec<SequenceId>,               // of the other rows of a search
    demands: bool,                        // another token, for the step under way
    rows: usize,                          // of the step under way
    told: usize,                          // of these, rows that tell of the prompt
    guessed: Vec<(u32, RequestedOutput)>, // the last of these rows, and guesses after it; or empty
}

impl Running {
    /// Whether the step under way has rows of this one's prompt.
    fn is_prefill(&self) -> bool {
        self.rows > 0 && self.sequence.generated() == 0
    }
}

impl Owner {
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
            waiting: vec![],
            running: vec![],
            arrivals: 0,
            chores: Chores::new(),
            masks: Masks::default(),
            drafter: None,
            fingerprint: None,
            outputs: Outputs::default(),
            chosen: vec![],
            following: 1,
            row_times: RowTimes::default(),
            metrics,
            meters,
            profile: None,
            timeline: None,
            watch: None,
            revival: None,
            is_lost: false,
            is_revived: false,
            is_pooling: false,
        }
    }

    /// Has a model whose device is lost made anew.
    pub(crate) fn with_revival(self, revival: Box<dyn ReloadModel>) -> Self {
        Self { revival: Some(revival), ..self }
    }

    /// Has it ask how short memory is, so often at most.
    pub(crate) fn with_watch(self, watch: SharedWatch, every: Duration) -> Self {
        Self { watch: Some(Watch::new(watch, every)), ..self }
    }

    /// Runs until every handle and stream is gone.
    pub(crate) async fn run(mut self, mut commands: UnboundedReceiver<Command>, mut pace: Pacer) {
        loop {
            while let Ok(command) = commands.try_recv() {
                self.take(command);
            }
            self.drop_ended();
            self.publish();
            if let Err(error) = self.do_chores().await {
                self.recover(error, &mut commands).await;
            }
            let was_idle = self.is_idle();
            self.admit();
            if was_idle && self.is_drafter_due() {
                self.revive_drafter(&mut commands).await;
            }
            if self.running.iter().any(|running| running.sequence.demands()) {
                if let Err(error) = telemetry::in_step(self.step()).await {
                    self.recover(error, &mut commands).await;
                }
                pace(Duration::ZERO).await;
            } else if !self.wait(&mut commands, &mut pace).await {
                return;
            }
        }
    }

    /// Waits for a command, or for the next time at which something is to be done without one.
    /// False where nobody is left who could tell anything.
    async fn wait(&mut self, commands: &mut UnboundedReceiver<Command>, pace: &mut Pacer) -> bool {
        let command = match self.alarm() {
            None => commands.next().await,
            Some(time) => match select(commands.next(), pace(time)).await {
                Either::Left((command, _)) => command,
                Either::Right(_) => return true,
            },
        };
        command.map(|command| self.take(command)).is_some()
    }

    fn take(&mut self, command: Command) {
        match command {
            Command::Generate(request) => {
                self.arrivals += 1;
                self.line_up_if_fit(Sequence::new(*request, self.arrivals));
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
            Command::ForgetPrefixes => self.cache.forget_idle(0),
            Command::Chore(chore) => self.chores.push_back(chore),
        }
    }

    /// Fails with what the model failed with; it has ended what failed otherwise.
    async fn step(&mut self) -> Result<(), Error> {
        // Once, as a consumer may change it at any time.
        for running in &mut self.running {
            running.demands = running.sequence.demands();
        }
        self.take_turns();
        let choosing = self.choosing_steps();
        self.share_rows();
        if choosing.is_none() {
            self.look_ahead().await;
        }
        let started = Instant::now();
        let (batch, prompt_rows) = self.batch(choosing);
        if batch.rows.is_empty() {
            return Ok(()); // none of them has room, which has ended them
        }
        let is_prefill = self.running.iter().any(Running::is_prefill);
        let rows = batch.rows.len();
        let forward = Instant::now();
        self.forward(&batch, choosing).await?;
        let times = StepTimes { started, forward, ran: forward.elapsed() };
        self.note_growth();
        // Tokens are progress; part of a long prompt is none.
        self.is_revived &= batch.wanted() == 0;
        self.await_masks().await;
        match choosing {
            Some(steps) => self.accept_chosen(steps),
            None => self.accept(),
        }
        self.shorten_full();
        self.prepare_masks();
        let elapsed = started.elapsed();
        self.note_step((rows, prompt_rows), choosing.unwrap_or(1), elapsed);
        self.note_profile(is_prefill, &times, elapsed);
        self.note_times(rows, choosing, elapsed);
        Ok(())
    }

    /// Has the model make the step. Masks that are left are computed while a device has it.
    async fn forward(&mut self, batch: &Batch, choosing: Option<usize>) -> Result<(), Error> {
        let mut step = match choosing {
            Some(steps) => {
                self.model.run_multi_step(batch, &mut self.cache, steps, &mut self.chosen)
            }
            None => self.model.forward(batch, &mut self.cache, &mut self.outputs),
        };
        let result = match poll!(&mut step) {
            Poll::Ready(result) => result,
            Poll::Pending => {
                self.masks.compute_left();
                step.await
            }
        };
        Ok(result?)
    }
}

#[cfg(test)]
mod drafts_tests;
#[cfg(test)]
mod following_tests;
#[cfg(test)]
mod machine_tests;
#[cfg(test)]
mod relief_tests;
#[cfg(test)]
mod revival_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod unranked_tests;
