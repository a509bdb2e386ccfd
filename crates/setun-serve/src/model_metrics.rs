//! Counters of a model's answers.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use setun::{Done, FinishReason};

use crate::bucket_counts::BucketCounts;

/// Bounds of numbers of tokens.
const TOKENS: &[u64] =
    &[1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000];

/// Bounds of times of a request, in microseconds: vLLM's, and below them those of small models.
pub(crate) const REQUEST_TIMES: &[u64] = &[
    1_000,
    2_000,
    5_000,
    10_000,
    20_000,
    50_000,
    100_000,
    200_000,
    300_000,
    500_000,
    800_000,
    1_000_000,
    1_500_000,
    2_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    15_000_000,
    20_000_000,
    30_000_000,
    40_000_000,
    50_000_000,
    60_000_000,
    120_000_000,
    240_000_000,
    480_000_000,
    960_000_000,
    1_920_000_000,
    7_680_000_000,
];

/// Bounds of times of a token, in microseconds. A small model takes less than one millisecond.
pub(crate) const TOKEN_TIMES: &[u64] = &[
    50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 25_000, 50_000, 75_000, 100_000, 150_000,
    200_000, 300_000, 400_000, 500_000, 750_000, 1_000_000, 2_500_000, 5_000_000, 7_500_000,
    10_000_000, 20_000_000, 40_000_000, 80_000_000,
];

/// Counts of what a model answered, beside those of its engine.
#[derive(Debug)]
pub(crate) struct ModelMetrics {
    /// Tokens of the prompts of requests that came to their end.
    pub(crate) prompt_tokens: AtomicU64,
    /// Those of them that were looked up in the prefix cache: all but those of means.
    pub(crate) queried_tokens: AtomicU64,
    /// Those of them that were found there.
    pub(crate) cached_tokens: AtomicU64,
    /// Tokens of prompts, by request.
    pub(crate) request_prompt_tokens: BucketCounts,
    /// Tokens that were generated, by choice.
    pub(crate) request_generation_tokens: BucketCounts,
    /// From a request to its end, in microseconds.
    pub(crate) latency: BucketCounts,
    /// Time of a token after the first, by choice of two tokens or more, in microseconds.
    pub(crate) time_per_token: BucketCounts,
    finished: [AtomicU64; REASONS.len()],
}

/// Reasons for which a choice ends by itself.
const REASONS: [FinishReason; 5] = [
    FinishReason::Stop,
    FinishReason::Length,
    FinishReason::ToolCalls,
    FinishReason::ContentFilter,
    FinishReason::Timeout,
];

impl Default for ModelMetrics {
    fn default() -> Self {
        Self {
            prompt_tokens: AtomicU64::new(0),
            queried_tokens: AtomicU64::new(0),
            cached_tokens: AtomicU64::new(0),
            request_prompt_tokens: BucketCounts::new(TOKENS),
            request_generation_tokens: BucketCounts::new(TOKENS),
            latency: BucketCounts::new(REQUEST_TIMES),
            time_per_token: BucketCounts::new(TOKEN_TIMES),
            finished: Default::default(),
        }
    }
}

impl ModelMetrics {
    /// Counts the end of a choice. The choices of a prompt share it: the first counts its tokens.
    pub(crate) fn add_done(&self, done: &Done, is_first: bool, time: Duration) {
        if let Some(place) = REASONS.iter().position(|reason| *reason == done.finish_reason) {
            self.finished[place].fetch_add(1, Ordering::Relaxed);
        }
        self.request_generation_tokens.add(done.usage.completion_tokens as u64);
        if is_first {
            self.add_prompt(done.usage.prompt_tokens);
            self.add_lookup(done.usage.prompt_tokens, done.usage.cached_tokens);
            self.latency.add(microseconds(time));
        }
        let rate = done.timings.tokens_per_second;
        if let Ok(time) = Duration::try_from_secs_f64(rate.recip()) {
            self.time_per_token.add(microseconds(time));
        }
    }

    /// Counts the tokens of a prompt.
    pub(crate) fn add_prompt(&self, tokens: usize) {
        self.prompt_tokens.fetch_add(tokens as u64, Ordering::Relaxed);
        self.request_prompt_tokens.add(tokens as u64);
    }

    /// Counts the tokens of a prompt that were looked up in the prefix cache, and those found there.
    pub(crate) fn add_lookup(&self, tokens: usize, cached: usize) {
        self.queried_tokens.fetch_add(tokens as u64, Ordering::Relaxed);
        self.cached_tokens.fetch_add(cached as u64, Ordering::Relaxed);
    }

    /// Choices that ended, by their reason.
    pub(crate) fn finished(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let count = |(reason, count): (FinishReason, &AtomicU64)| {
            (reason.as_str(), count.load(Ordering::Relaxed))
        };
        REASONS.into_iter().zip(&self.finished).map(count)
    }
}

fn microseconds(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
