//! What an engine counts.

use std::time::Duration;

use setun_model::MemoryUse;

use crate::{
    event::FinishReason,
    histogram::{Histogram, TimeHistogram},
};

/// What an engine has done since it started, and what is there now. Of several devices, the sum.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EngineMetrics {
    /// Steps: passes over the weights.
    pub steps: u64,
    /// Rows of all steps: tokens that were computed.
    pub rows: u64,
    /// Rows beyond one of a sequence in a step: of prompts, or of tokens that had to be computed
    /// again.
    pub prompt_rows: u64,
    /// Generations that were given a place in the cache, each time that they were.
    pub admissions: u64,
    /// Those of them that found the beginning of their tokens in the cache.
    pub prefix_hits: u64,
    /// Positions of prompts that were in the cache already.
    pub reused_positions: u64,
    /// Times that guessed tokens of a sequence were verified.
    pub verifications: u64,
    /// Tokens that were guessed, from the text so far or by a draft.
    pub guessed: u64,
    /// Those of them that were right.
    pub right: u64,
    /// How often a generation gave up its memory to others.
    pub preemptions: u64,
    /// Positions that it had then, most of which are computed again.
    pub dropped_positions: u64,
    /// How often memory was given back because it was short, or the cache was held to less.
    pub reliefs: u64,
    /// Bytes of the cache that were given back then.
    pub relieved_bytes: u64,
    /// Tokens that were generated.
    pub tokens: u64,
    /// Generations that came to their end: an end token, a stop string, or their length.
    pub finished: u64,
    /// Generations that their caller ended.
    pub aborted: u64,
    /// Generations whose time was over.
    pub overdue: u64,
    /// Generations that ended with an error.
    pub failed: u64,
    /// Time from a request to its place in the cache.
    pub queue: TimeHistogram,
    /// Time from a request to its first token.
    pub first_token: TimeHistogram,
    /// Time from a token to the next of its generation. Tokens that one step gives come at once.
    pub between_tokens: TimeHistogram,
    /// Time that a step took, with choosing tokens; where the model makes several by itself, that
    /// of each.
    pub step_time: TimeHistogram,
    /// Rows of a step: the size of the batch.
    pub step_rows: Histogram,
    /// Bytes that the model and its draft keep in memory, now.
    pub memory: MemoryUse,
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

/// What is timed. The order is that of their names in `observe`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timed {
    Queue,
    FirstToken,
    BetweenTokens,
    Step,
}

impl EngineMetrics {
    /// Notes a step, or so many with the same rows.
    pub(crate) fn add_step(&mut self, rows: usize, prompt_rows: usize, steps: usize) {
        let later_rows = rows - prompt_rows;
        self.steps += steps as u64;
        self.rows += (rows + later_rows * (steps - 1)) as u64;
        self.prompt_rows += prompt_rows as u64;
        self.step_rows.record(rows as u64);
        self.step_rows.record_many(later_rows as u64, steps as u64 - 1);
    }

    /// Notes that something took this time, so many times.
    pub(crate) fn add_time(&mut self, timed: Timed, time: Duration, times: u64) {
        let histogram = match timed {
            Timed::Queue => &mut self.queue,
            Timed::FirstToken => &mut self.first_token,
            Timed::BetweenTokens => &mut self.between_tokens,
            Timed::Step => &mut self.step_time,
        };
        histogram.record_many(time, times);
    }

    /// Notes a place in the cache, with so many positions that were there.
    pub(crate) fn add_admission(&mut self, reused: usize) {
        self.admissions += 1;
        self.prefix_hits += u64::from(reused > 0);
        self.reused_positions += reused as u64;
    }

    /// Notes that so many bytes of the cache were given back.
    pub(crate) fn add_relief(&mut self, bytes: usize) {
        self.reliefs += 1;
        self.relieved_bytes += bytes as u64;
    }

    /// Notes the end of a generation.
    pub(crate) fn add_end(&mut self, reason: FinishReason) {
        match reason {
            FinishReason::Aborted => self.aborted += 1,
            FinishReason::Deadline => self.overdue += 1,
            _ => self.finished += 1,
        }
    }

    /// Notes that of so many guessed tokens so many were right.
    pub(crate) fn add_guesses(&mut self, guessed: usize, right: usize) {
        self.verifications += 1;
        self.guessed += guessed as u64;
        self.right += right as u64;
    }

    /// Adds those of another device.
    pub(crate) fn add(&mut self, other: &Self) {
        self.steps += other.steps;
        self.rows += other.rows;
        self.prompt_rows += other.prompt_rows;
        self.admissions += other.admissions;
        self.prefix_hits += other.prefix_hits;
        self.reused_positions += other.reused_positions;
        self.verifications += other.verifications;
        self.guessed += other.guessed;
        self.right += other.right;
        self.preemptions += other.preemptions;
        self.dropped_positions += other.dropped_positions;
        self.reliefs += other.reliefs;
        self.relieved_bytes += other.relieved_bytes;
        self.tokens += other.tokens;
        self.finished += other.finished;
        self.aborted += other.aborted;
        self.overdue += other.overdue;
        self.failed += other.failed;
        self.queue.add(&other.queue);
        self.first_token.add(&other.first_token);
        self.between_tokens.add(&other.between_tokens);
        self.step_time.add(&other.step_time);
        self.step_rows.add(&other.step_rows);
        self.memory.add(&other.memory);
        self.waiting += other.waiting;
        self.running += other.running;
        self.blocks += other.blocks;
        self.used_blocks += other.used_blocks;
        self.idle_blocks += other.idle_blocks;
    }
}
