//! The one owner of a model: it steps a list of sequences, and nobody else touches the model.
//!
//! A step takes one row of every sequence that decodes, and fills up with rows of prompts.
//! As logits do not depend on the batch or on how a prompt is cut, both are free choices:
//! the number of prompt rows is set so that a step takes no longer than a target time, which
//! keeps cancelling and other streams responsive. Where a model chooses greedy tokens by itself,
//! so is the number of steps that follow each other without a look at what they gave.

mod following;
mod lost;
mod recovery;

use std::{collections::VecDeque, time::Duration};

use futures::{
    StreamExt,
    channel::{mpsc::UnboundedReceiver, oneshot},
    future::LocalBoxFuture,
};
use setun_model::{Batch, MemoryUse, Model, Outputs, PagedCache, Wants};
use web_time::Instant;

use crate::{
    device::Revive,
    error::Error,
    event::FinishReason,
    profile::EngineProfile,
    sequence::{Next, Report, Request, Sequence},
    stream::{Demand, Queue},
};

/// Time that a step should stay under while somebody waits for it: the next token of another
/// sequence, or a page's worker for its messages.
const STEP_TARGET: Duration = Duration::from_millis(50);

/// The same for steps of prompts alone, where only a cancellation has to wait. All weights are
/// read in every step, so few long ones take less time than many.
const PROMPT_STEP_TARGET: Duration =
    if cfg!(target_arch = "wasm32") { STEP_TARGET } else { Duration::from_secs(2) };

/// Prompt rows of the first step, before it is known how long a row takes.
const FIRST_PROMPT_ROWS: usize = if cfg!(target_arch = "wasm32") { 4 } else { 64 };

/// What the owner is told.
#[derive(Debug)]
pub(crate) enum Command {
    /// A new generation.
    Generate(Box<Request>),
    /// A consumer took events, cancelled or left.
    Wake,
    /// Time steps from now on, or no longer; the reply is what was timed until now.
    Profile {
        /// From now on.
        profiled: bool,
        /// Nobody need listen.
        reply: oneshot::Sender<Option<EngineProfile>>,
    },
    /// Tell what is kept in memory. Nobody need listen.
    Memory(oneshot::Sender<MemoryUse>),
}

/// How a sequence ended: why, and by which stop string.
type End = Result<(FinishReason, Option<String>), Error>;

/// Called between steps, so that a host with one thread can do something else.
pub(crate) type Pacer = Box<dyn FnMut() -> LocalBoxFuture<'static, ()>>;

pub(crate) struct Owner {
    model: Box<dyn Model>,
    report: Report,
    cache: PagedCache,
    max_blocks: usize,
    waiting: VecDeque<Box<Request>>,
    running: Vec<Running>,
    outputs: Outputs,
    chosen: Vec<u32>,     // in place of outputs, [steps, wanted rows]
    following: usize,     // steps that may follow each other
    prompt_row: Duration, // what one took in the last step with prompts; zero before the first
    plain_step: Duration, // what the last step without prompts took
    profile: Option<EngineProfile>,
    revival: Option<Box<dyn Revive>>,
    is_revived: bool, // and no token has come since
}

struct Running {
    sequence: Sequence,
    reserved_blocks: usize,
    demands: bool, // another token, for the step under way
    rows: usize,   // of the step under way
}

impl Running {
    /// Whether the step under way has rows of this one's prompt.
    fn is_prefill(&self) -> bool {
        self.rows > 0 && self.sequence.generated() == 0
    }
}

impl Owner {
    /// `max_blocks` bounds the cache; it must hold one whole context.
    pub(crate) fn new(model: Box<dyn Model>, report: Report, max_blocks: usize) -> Self {
        let cache = PagedCache::new(model.block_positions(), max_blocks);
        Self {
            model,
            report,
            cache,
            max_blocks,
            waiting: VecDeque::new(),
            running: vec![],
            outputs: Outputs::default(),
            chosen: vec![],
            following: 1,
            prompt_row: Duration::ZERO,
            plain_step: Duration::ZERO,
            profile: None,
            revival: None,
            is_revived: false,
        }
    }

    /// Has a model whose device is lost made anew.
    pub(crate) fn with_revival(self, revival: Box<dyn Revive>) -> Self {
        Self { revival: Some(revival), ..self }
    }

    /// Runs until every handle and stream is gone.
    pub(crate) async fn run(mut self, mut commands: UnboundedReceiver<Command>, mut pace: Pacer) {
        loop {
            while let Ok(command) = commands.try_recv() {
                self.take(command);
            }
            self.drop_ended();
            self.admit();
            if self.has_work() {
                if let Err(error) = self.step().await {
                    self.recover(error, &mut commands).await;
                }
                pace().await;
            } else {
                match commands.next().await {
                    Some(command) => self.take(command),
                    None => return,
                }
            }
        }
    }

    fn take(&mut self, command: Command) {
        match command {
            Command::Generate(request) => self.waiting.push_back(request),
            Command::Wake => {}
            Command::Profile { profiled, reply } => {
                let timed =
                    self.profile.take().filter(|profile| *profile != EngineProfile::default());
                self.profile = profiled.then(EngineProfile::default);
                self.model.set_profiled(profiled);
                let _ = reply.send(timed);
            }
            Command::Memory(reply) => {
                let _ = reply.send(self.model.memory());
            }
        }
    }

    /// Takes out sequences whose consumers have left or cancelled.
    fn drop_ended(&mut self) {
        let ended = |queue: &Queue| matches!(queue.demand(), Demand::Cancel | Demand::Gone);
        for index in (0..self.running.len()).rev() {
            if ended(self.running[index].sequence.queue()) {
                self.end(index, FinishReason::Aborted, None);
            }
        }
        for index in (0..self.waiting.len()).rev() {
            if ended(&self.waiting[index].queue)
                && let Some(request) = self.waiting.remove(index)
            {
                let sequence = Sequence::new(*request, self.cache.create());
                sequence.finish(FinishReason::Aborted, None, &self.report);
                self.cache.remove(sequence.id);
            }
        }
    }

    /// Starts waiting requests, in order, while all that are started can be finished: the
    /// blocks that each may come to need are set aside.
    fn admit(&mut self) {
        while let Some(request) = self.waiting.front() {
            let blocks = request.most_positions().div_ceil(self.cache.block_positions());
            let reserved: usize = self.running.iter().map(|running| running.reserved_blocks).sum();
            if reserved + blocks > self.max_blocks {
                return;
            }
            if let Some(request) = self.waiting.pop_front() {
                let sequence = Sequence::new(*request, self.cache.create());
                let (demands, rows) = (false, 0);
                self.running.push(Running { sequence, reserved_blocks: blocks, demands, rows });
            }
        }
    }

    fn has_work(&self) -> bool {
        self.running.iter().any(|running| running.sequence.queue().demand() == Demand::More)
    }

    /// Fails with what the model failed with; it has ended what failed otherwise.
    async fn step(&mut self) -> Result<(), Error> {
        let started = Instant::now();
        // Once, as a consumer may change it at any time.
        for running in &mut self.running {
            running.demands = running.sequence.queue().demand() == Demand::More;
        }
        let choosing = self.choosing_steps();
        let (batch, prompt_rows) = match self.batch(choosing) {
            Ok(batch) => batch,
            Err(error) => {
                self.fail_all(error);
                return Ok(());
            }
        };
        let is_prefill = self.running.iter().any(Running::is_prefill);
        let has_others = batch.rows.len() > prompt_rows;
        let result = match choosing {
            Some(steps) => {
                self.model.choose(&batch, &mut self.cache, steps, &mut self.chosen).await
            }
            None => self.model.forward(&batch, &mut self.cache, &mut self.outputs).await,
        };
        result?;
        // Tokens are progress; part of a long prompt is none.
        self.is_revived &= batch.wanted() == 0;
        let accepted = match choosing {
            Some(steps) => self.accept_chosen(steps),
            None => self.accept(),
        };
        if let Err(error) = accepted {
            self.fail_all(error);
            return Ok(());
        }
        let elapsed = started.elapsed();
        if let (Some(profile), Some(step)) = (&mut self.profile, self.model.profile()) {
            let phase = if is_prefill { &mut profile.prefill } else { &mut profile.decode };
            phase.add(elapsed, step);
        }
        // At most half, so that a plain step that happened to be long does not make rows seem free.
        let others = if has_others { self.plain_step.min(elapsed / 2) } else { Duration::ZERO };
        let prompt_rows = u32::try_from(prompt_rows).unwrap_or(u32::MAX);
        if let Some(row) = elapsed.saturating_sub(others).checked_div(prompt_rows) {
            self.prompt_row = row.max(Duration::from_nanos(1));
        } else {
            self.note_plain(elapsed, choosing);
        }
        Ok(())
    }

    /// The rows of the next step, or of the first of several in which the model chooses, and how
    /// many of them are more than one row a sequence.
    fn batch(&mut self, choosing: Option<usize>) -> Result<(Batch, usize), Error> {
        let mut batch = Batch::default();
        let most_prompt_rows = self.most_prompt_rows();
        let mut prompt_rows = 0;
        let mut free = self.model.max_rows();
        for running in &mut self.running {
            running.rows = 0;
            let sequence = &running.sequence;
            if free == 0 || !running.demands {
                continue;
            }
            let pending = sequence.pending().len();
            let rows = if pending == 1 {
                1
            } else {
                // In steps of like size: a short last one would read all weights for few rows.
                let most = most_prompt_rows.saturating_sub(prompt_rows).max(1);
                pending.div_ceil(pending.div_ceil(most))
            };
            let rows = rows.min(free);
            self.cache.extend(sequence.id, rows.max(choosing.unwrap_or(1)))?;
            let tokens = &sequence.pending()[..rows];
            let wants = match choosing {
                _ if rows < pending => Wants::Nothing,
                Some(_) => sequence.choice(),
                None => sequence.wants(self.model.vocab_size()),
            };
            batch.push_run(sequence.id, sequence.cached(), tokens, wants);
            running.rows = rows;
            free -= rows;
            if pending > 1 {
                prompt_rows += rows;
            }
        }
        Ok((batch, prompt_rows))
    }

    /// Hands each sequence whose last row is done its logits.
    fn accept(&mut self) -> Result<(), Error> {
        let mut rows = self.outputs.rows();
        let mut ended = vec![];
        for (index, running) in self.running.iter_mut().enumerate() {
            if running.rows == 0 {
                continue;
            }
            running.sequence.advance(running.rows);
            if !running.sequence.pending().is_empty() {
                continue;
            }
            let Some(row) = rows.next() else { break };
            match running.sequence.accept(row) {
                Ok(Next::Continue) => {}
                Ok(Next::Again) => {
                    self.cache.truncate(running.sequence.id, running.sequence.cached())?;
                }
                Ok(Next::Finished(reason, stop)) => ended.push((index, Ok((reason, stop)))),
                Err(error) => ended.push((index, Err(error))),
            }
        }
        drop(rows);
        self.end_all(ended);
        Ok(())
    }

    /// Ends those sequences, in order of their indices.
    fn end_all(&mut self, ended: Vec<(usize, End)>) {
        for (index, end) in ended.into_iter().rev() {
            match end {
                Ok((reason, stop)) => self.end(index, reason, stop),
                Err(error) => {
                    self.running[index].sequence.queue().push(Err(error));
                    self.forget(index);
                }
            }
        }
    }

    /// As many rows of prompts as a step has time for.
    fn most_prompt_rows(&self) -> usize {
        let decodes = |sequence: &Sequence| {
            sequence.pending().len() == 1 && sequence.queue().demand() == Demand::More
        };
        let decoding = self.running.iter().any(|running| decodes(&running.sequence));
        let target = if decoding { STEP_TARGET } else { PROMPT_STEP_TARGET };
        let rows = target.as_nanos().checked_div(self.prompt_row.as_nanos());
        let rows =
            rows.map_or(FIRST_PROMPT_ROWS, |rows| usize::try_from(rows).unwrap_or(usize::MAX));
        rows.clamp(1, self.model.max_rows())
    }

    fn end(&mut self, index: usize, reason: FinishReason, stop: Option<String>) {
        self.running[index].sequence.finish(reason, stop, &self.report);
        self.forget(index);
    }

    fn forget(&mut self, index: usize) {
        let running = self.running.remove(index);
        self.cache.remove(running.sequence.id);
    }

    /// A step failed, so the contents of the cache at its positions are not known. All
    /// generations under way end with the error; new ones may start.
    fn fail_all(&mut self, error: Error) {
        let error = std::sync::Arc::new(error);
        while let Some(running) = self.running.pop() {
            running.sequence.queue().push(Err(Error::Step(std::sync::Arc::clone(&error))));
            self.cache.remove(running.sequence.id);
        }
    }
}

#[cfg(test)]
mod following_tests;
#[cfg(test)]
mod revival_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod unranked_tests;
