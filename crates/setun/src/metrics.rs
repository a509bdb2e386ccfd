//! What an engine counts.

use futures::channel::oneshot;

use crate::{
    engine::Engine,
    error::Error,
    owner::{Chore, Command},
};

/// What an engine has done since it started, and what is there now. Of several devices, the sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EngineMetrics {
    /// Steps: passes over the weights.
    pub steps: u64,
    /// Rows of all steps: tokens that were computed.
    pub rows: u64,
    /// Rows beyond one of a sequence in a step: of prompts, or of tokens that had to be computed
    /// again.
    pub prompt_rows: u64,
    /// Positions of prompts that were in the cache already.
    pub reused_positions: u64,
    /// Times that guessed tokens of a sequence were verified.
    pub verifications: u64,
    /// Tokens that were guessed from the text so far.
    pub guessed: u64,
    /// Those of them that were right.
    pub right: u64,
    /// How often a generation gave up its memory to others.
    pub preemptions: u64,
    /// Positions that it had then, most of which are computed again.
    pub dropped_positions: u64,
    /// Generations that wait for their first turn or for memory, now.
    pub waiting: usize,
    /// Generations that have a place in the cache, now.
    pub running: usize,
    /// Most blocks that the cache may have, now.
    pub blocks: usize,
    /// Blocks of running generations, now.
    pub used_blocks: usize,
    /// Blocks that are kept for prompts that begin as others did, now.
    pub idle_blocks: usize,
}

impl EngineMetrics {
    /// Notes a step, or so many with the same rows.
    pub(crate) fn add_step(&mut self, rows: usize, prompt_rows: usize, steps: usize) {
        self.steps += steps as u64;
        self.rows += (rows + (rows - prompt_rows) * (steps - 1)) as u64;
        self.prompt_rows += prompt_rows as u64;
    }

    /// Notes that of so many guessed tokens so many were right.
    pub(crate) fn add_guesses(&mut self, guessed: usize, right: usize) {
        self.verifications += 1;
        self.guessed += guessed as u64;
        self.right += right as u64;
    }

    fn add(&mut self, other: &Self) {
        self.steps += other.steps;
        self.rows += other.rows;
        self.prompt_rows += other.prompt_rows;
        self.reused_positions += other.reused_positions;
        self.verifications += other.verifications;
        self.guessed += other.guessed;
        self.right += other.right;
        self.preemptions += other.preemptions;
        self.dropped_positions += other.dropped_positions;
        self.waiting += other.waiting;
        self.running += other.running;
        self.blocks += other.blocks;
        self.used_blocks += other.used_blocks;
        self.idle_blocks += other.idle_blocks;
    }
}

impl Engine {
    /// What was counted, after the step under way.
    ///
    /// # Errors
    ///
    /// If the engine has ended.
    pub async fn metrics(&self) -> Result<EngineMetrics, Error> {
        let mut sum = EngineMetrics::default();
        for owner in self.owners.iter() {
            let (reply, metrics) = oneshot::channel();
            owner.send(Command::Chore(Chore::Metrics(reply)))?;
            sum.add(&metrics.await.map_err(|_| Error::Disposed)?);
        }
        Ok(sum)
    }

    /// Forgets what is kept in the cache for prompts that begin as others did. What runs goes on.
    ///
    /// # Errors
    ///
    /// If the engine has ended.
    pub fn forget_prefixes(&self) -> Result<(), Error> {
        self.owners.iter().try_for_each(|owner| owner.send(Command::ForgetPrefixes))
    }
}
