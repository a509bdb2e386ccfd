//! Figures of a simulation.

use serde::Serialize;

use crate::{
    observed::Run,
    options::{LostReplica, Options},
};

/// What a simulation has found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// Name of the policy.
    pub policy: &'static str,
    /// Replicas at the begin.
    pub replicas: u32,
    /// Requests, all of which are answered.
    pub requests: u32,
    /// Tokens of their prompts.
    pub prompt_tokens: u64,
    /// Of these, found in a cache.
    pub cached_tokens: u64,
    /// Prompt tokens that were computed, for requests that were sent again as well.
    pub computed_tokens: u64,
    /// Tokens that were computed again after a preemption.
    pub recomputed_tokens: u64,
    /// Tokens that were generated.
    pub output_tokens: u64,
    /// Cached tokens by prompt tokens.
    pub cached_share: f64,
    /// Time to the first token.
    pub first_token_ms: FirstToken,
    /// The most loaded replica by the mean of those that are not lost.
    pub imbalance: Imbalance,
    /// Requests that were preempted.
    pub preemptions: u64,
    /// Seconds to the last token.
    pub seconds: f64,
    /// What the loss of a replica costs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<Loss>,
}

/// Milliseconds from a request to its first token.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FirstToken {
    /// Half of the requests have it by then.
    pub median: f64,
    /// 95 %.
    pub p95: f64,
    /// 99 %.
    pub p99: f64,
}

/// Most by mean, over replicas.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Imbalance {
    /// Of open requests, averaged over time.
    pub open_requests: f64,
    /// Of prompt tokens computed.
    pub computed_tokens: f64,
}

/// What the loss of a replica costs, beside the same simulation without it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Loss {
    /// The replica.
    pub replica: u32,
    /// Milliseconds from the begin of the trace.
    pub at_ms: u64,
    /// Requests that were open there and were sent again.
    pub restarted_requests: u32,
    /// Keys that were last sent there and come again.
    pub moved_keys: u32,
    /// Keys that go to another replica though theirs is there.
    pub other_moved_keys: u32,
    /// Prompt tokens computed more.
    pub more_computed_tokens: i64,
    /// Cached share without the loss.
    pub cached_share_without: f64,
    /// 99 % of the first tokens without the loss, in milliseconds.
    pub p99_without: f64,
}

impl Report {
    pub(crate) fn new(options: &Options, run: &Run) -> Self {
        let lost = options.lose.map(|lost| lost.replica);
        let there = || {
            let replicas = (0..options.replicas).zip(&run.replicas).zip(&run.open_time);
            replicas.filter(move |((number, _), _)| Some(*number) != lost)
        };
        let sum = |of: fn(&crate::replica::Replica) -> u64| run.replicas.iter().map(of).sum();
        let cached_tokens = run.answers.iter().map(|answer| u64::from(answer.cached)).sum();
        Self {
            policy: options.policy.name(),
            replicas: options.replicas,
            requests: u32::try_from(run.answers.len()).unwrap_or(u32::MAX),
            prompt_tokens: run.prompt_tokens,
            cached_tokens,
            computed_tokens: sum(|replica| replica.computed),
            recomputed_tokens: sum(|replica| replica.recomputed),
            output_tokens: run.output_tokens,
            cached_share: float(cached_tokens) / float(run.prompt_tokens),
            first_token_ms: FirstToken::new(run),
            imbalance: Imbalance {
                open_requests: max_over_mean(there().map(|(_, time)| wide_float(*time))),
                computed_tokens: max_over_mean(there().map(|((_, it), _)| float(it.computed))),
            },
            preemptions: sum(|replica| replica.preemptions),
            seconds: float(run.end) / 1e6,
            loss: None,
        }
    }
}

impl FirstToken {
    fn new(run: &Run) -> Self {
        let mut times: Vec<_> = run.answers.iter().map(|answer| answer.first_token).collect();
        times.sort_unstable();
        // The smallest time that this percentage of the requests has at most.
        let at = |percent: usize| {
            let rank = (times.len() * percent).div_ceil(100).max(1);
            float(times[rank - 1]) / 1000.0
        };
        Self { median: at(50), p95: at(95), p99: at(99) }
    }
}

impl Loss {
    /// `whole` is the simulation without the loss.
    pub(crate) fn new(lost: LostReplica, report: &Report, whole: &Report, run: &Run) -> Self {
        let computed = |report: &Report| i64::try_from(report.computed_tokens).unwrap_or(i64::MAX);
        Self {
            replica: lost.replica,
            at_ms: lost.at_ms,
            restarted_requests: run.restarted,
            moved_keys: run.keys_of_lost,
            other_moved_keys: run.keys_of_others,
            more_computed_tokens: computed(report) - computed(whole),
            cached_share_without: whole.cached_share,
            p99_without: whole.first_token_ms.p99,
        }
    }
}

fn max_over_mean(values: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut most, mut count) = (0.0, 0.0_f64, 0.0);
    for value in values {
        sum += value;
        most = most.max(value);
        count += 1.0;
    }
    if sum > 0.0 { most * count / sum } else { 1.0 }
}

#[expect(clippy::cast_precision_loss, reason = "counts and times far below 2^53")]
fn float(count: u64) -> f64 {
    count as f64
}

#[expect(clippy::cast_precision_loss, reason = "a ratio of two of them is printed")]
fn wide_float(time: u128) -> f64 {
    time as f64
}
