//! Metrics of an engine.

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
    pub cached_prompt_tokens: u64,
    /// Times that guessed tokens of a sequence were verified.
    pub drafts: u64,
    /// Tokens that were guessed, from the text so far or by a draft.
    pub draft_tokens: u64,
    /// Those of them that were right.
    pub accepted_tokens: u64,
    /// How often a generation gave up its memory to others.
    pub preemptions: u64,
    /// Positions that it had then, most of which are computed again.
    pub preempted_tokens: u64,
    /// How often memory was given back because it was short, or the cache was held to less.
    pub memory_releases: u64,
    /// Bytes of the cache that were given back then.
    pub released_bytes: u64,
    /// Tokens that were generated.
    pub tokens: u64,
    /// Generations that came to their end: an end token, a stop string, or their length.
    pub finished: u64,
    /// Generations that their caller ended.
    pub aborted: u64,
    /// Generations whose time was over.
    pub timed_out: u64,
    /// Generations that ended with an error.
    pub failed: u64,
    /// Time from a request to its place in the cache.
    pub queue_time: TimeHistogram,
    /// Time from a request to its first token.
    pub time_to_first_token: TimeHistogram,
    /// Time from a generation's place in the cache to its first token.
    pub prefill_time: TimeHistogram,
    /// Time from the first token of a generation to its last, of those that ended without an error.
    pub decode_time: TimeHistogram,
    /// Time from a token to the next of its generation. Tokens that one step gives come at once.
    pub inter_token_latency: TimeHistogram,
    /// Time that a step took, with choosing tokens; where the model makes several by itself, that
    /// of each.
    pub step_time: TimeHistogram,
    /// Rows of a step: the size of the batch.
    pub step_rows: Histogram,
    /// Bytes that the model and its draft keep in memory, now.
    pub memory: MemoryUse,
    /// Time of steps by operation, where [`EngineOptions::operation_times`] requested it.
    ///
    /// [`EngineOptions::operation_times`]: crate::EngineOptions::operation_times
    pub operations: Vec<OperationTime>,
    /// Generations that wait for their first turn or for memory, now.
    pub waiting: usize,
    /// Generations that have a place in the cache, now.
    pub running: usize,
    /// Most blocks that the cache may have, now.
    pub blocks: usize,
    /// Blocks of running generations, now.
    pub used_blocks: usize,
    /// Blocks that are kept for prompts that begin as others did, now.
    pub cached_blocks: usize,
}

/// Time of one kind of operation, as the steps that were timed tell for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperationTime {
    /// Name of the operation, or [`OTHER`](Self::OTHER).
    pub name: &'static str,
    /// Which layers, of a `ternary_matmul`: `qkv`, or `q`, `k` and `v`; `o`; `down`.
    pub role: Option<&'static str>,
    /// In steps with rows of prompts, whatever else they had.
    pub prefill: Duration,
    /// In steps in which every sequence had a token already.
    pub decode: Duration,
}

impl OperationTime {
    /// What an engine does for a step beside its operations, such as choosing tokens.
    pub const OTHER: &str = "other";

    /// Adds a time to those of the same operation.
    pub(crate) fn add(
        (name, role): (&'static str, Option<&'static str>),
        is_prefill: bool,
        time: Duration,
        times: &mut Vec<Self>,
    ) {
        let known = times.iter().position(|own| (own.name, own.role) == (name, role));
        let at = known.unwrap_or_else(|| {
            times.push(Self { name, role, prefill: Duration::ZERO, decode: Duration::ZERO });
            times.len() - 1
        });
        let own = &mut times[at];
        *(if is_prefill { &mut own.prefill } else { &mut own.decode }) += time;
    }
}

/// What is timed. The order is that of their names in `observe`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timed {
    Queue,
    FirstToken,
    BetweenTokens,
    Step,
    Prefill,
    Decode,
}

impl EngineMetrics {
    /// Notes a step, or this many with the same rows.
    pub(crate) fn add_step(&mut self, rows: usize, prompt_rows: usize, steps: usize) {
        let later_rows = rows - prompt_rows;
        self.steps += steps as u64;
        self.rows += (rows + later_rows * (steps - 1)) as u64;
        self.prompt_rows += prompt_rows as u64;
        self.step_rows.record(rows as u64);
        self.step_rows.record_many(later_rows as u64, steps as u64 - 1);
    }

    /// Notes that something took this time, this many times.
    pub(crate) fn add_time(&mut self, timed: Timed, time: Duration, times: u64) {
        let histogram = match timed {
            Timed::Queue => &mut self.queue_time,
            Timed::FirstToken => &mut self.time_to_first_token,
            Timed::BetweenTokens => &mut self.inter_token_latency,
            Timed::Step => &mut self.step_time,
            Timed::Prefill => &mut self.prefill_time,
            Timed::Decode => &mut self.decode_time,
        };
        histogram.record_many(time, times);
    }

    /// Notes a place in the cache, with this many positions that were there.
    pub(crate) fn add_admission(&mut self, reused: usize) {
        self.admissions += 1;
        self.prefix_hits += u64::from(reused > 0);
        self.cached_prompt_tokens += reused as u64;
    }

    /// Notes that this many bytes of the cache were given back.
    pub(crate) fn add_memory_release(&mut self, bytes: usize) {
        self.memory_releases += 1;
        self.released_bytes += bytes as u64;
    }

    /// Notes the end of a generation.
    pub(crate) fn add_end(&mut self, reason: FinishReason) {
        match reason {
            FinishReason::Aborted => self.aborted += 1,
            FinishReason::Timeout => self.timed_out += 1,
            _ => self.finished += 1,
        }
    }

    /// Notes that of this many guessed tokens this many were right.
    pub(crate) fn add_draft(&mut self, draft: usize, right: usize) {
        self.drafts += 1;
        self.draft_tokens += draft as u64;
        self.accepted_tokens += right as u64;
    }

    /// Adds those of another device, or of an engine that has ended.
    pub fn add(&mut self, other: &Self) {
        self.steps += other.steps;
        self.rows += other.rows;
        self.prompt_rows += other.prompt_rows;
        self.admissions += other.admissions;
        self.prefix_hits += other.prefix_hits;
        self.cached_prompt_tokens += other.cached_prompt_tokens;
        self.drafts += other.drafts;
        self.draft_tokens += other.draft_tokens;
        self.accepted_tokens += other.accepted_tokens;
        self.preemptions += other.preemptions;
        self.preempted_tokens += other.preempted_tokens;
        self.memory_releases += other.memory_releases;
        self.released_bytes += other.released_bytes;
        self.tokens += other.tokens;
        self.finished += other.finished;
        self.aborted += other.aborted;
        self.timed_out += other.timed_out;
        self.failed += other.failed;
        self.queue_time.add(&other.queue_time);
        self.time_to_first_token.add(&other.time_to_first_token);
        self.prefill_time.add(&other.prefill_time);
        self.decode_time.add(&other.decode_time);
        self.inter_token_latency.add(&other.inter_token_latency);
        self.step_time.add(&other.step_time);
        self.step_rows.add(&other.step_rows);
        self.memory.add(&other.memory);
        for time in &other.operations {
            for (is_prefill, part) in [(true, time.prefill), (false, time.decode)] {
                OperationTime::add((time.name, time.role), is_prefill, part, &mut self.operations);
            }
        }
        self.waiting += other.waiting;
        self.running += other.running;
        self.blocks += other.blocks;
        self.used_blocks += other.used_blocks;
        self.cached_blocks += other.cached_blocks;
    }
}
