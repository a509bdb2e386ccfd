//! Limits that a token must reach to be among the best, from the exact logits of a few.
//!
//! Bounds are wide, so the `k`-th best lower bound is far below the `k`-th best logit. Those `k`
//! tokens that have the best lower bounds are computed first. As many tokens have the least of
//! their logits or more, so whichever cannot reach it is not among the best.

use setun_ops::top_logits::{NoisyScores, Ranked, TopLogitsRequest};

/// Least values of a row's best tokens.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limit {
    pub(super) logit: f32, // of those that are ranked by logit
    pub(super) score: Option<(NoisyScores, f64)>, // of those that are ranked by score
}

impl Default for Limit {
    /// One that everything reaches.
    fn default() -> Self {
        Self { logit: f32::NEG_INFINITY, score: None }
    }
}

impl Limit {
    /// The limit from the exact logits of some tokens that a request does not touch, as many as it
    /// wants by score or logit and by logit.
    pub(super) fn of(request: &TopLogitsRequest, ranked: &[Ranked]) -> Self {
        let (best, top) = ranked.split_at(request.k);
        let logits = |ranked: &[Ranked]| {
            let logits = ranked.iter().map(|ranked| ranked.logit);
            (logits.clone().fold(f32::INFINITY, f32::min), logits.fold(f32::NEG_INFINITY, f32::max))
        };
        if let Some(scores) = request.noise {
            let of_best = best.iter().map(|best| scores.score(best.token, best.logit));
            let score = of_best.fold(f64::INFINITY, f64::min);
            return Self { logit: logits(top).0, score: Some((scores, score)) };
        }
        let (least, most) = logits(best);
        Self { logit: least.max(request.least(most)), score: None }
    }

    /// False only of a token that is not among the best, by its upper bound.
    #[inline]
    pub(super) fn may_reach(&self, token: usize, upper: f32) -> bool {
        let by_score = |(scores, least): (NoisyScores, f64)| {
            u32::try_from(token).is_ok_and(|token| scores.score_bound(token, upper) >= least)
        };
        upper >= self.logit || self.score.is_some_and(by_score)
    }
}
