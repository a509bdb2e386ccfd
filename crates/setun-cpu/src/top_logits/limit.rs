//! What a token must reach to be among the best: the exact logits of a few that may be.
//!
//! Bounds are wide, so the `k`-th best lower bound is far below the `k`-th best logit. Those `k`
//! tokens that have the best lower bounds are computed first. As many tokens have the least of
//! their logits or more, so whichever cannot reach it is not among the best.

use std::sync::atomic::{AtomicUsize, Ordering};

use setun_ops::top_logits::{NoisyScores, Ranked, TopLogitsRequest};

use super::{GROUP, MAX_CANDIDATES, RUN, RowGroup, RowState, TopLogitsScratch, rank, rescore};
use crate::{screen::Screen, screen_dot::ScreenDot, split::Grid, walk::Walk};

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
    fn of(request: &TopLogitsRequest, ranked: &[Ranked]) -> Self {
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
    fn may_reach(&self, token: usize, upper: f32) -> bool {
        let by_score = |(scores, least): (NoisyScores, f64)| {
            u32::try_from(token).is_ok_and(|token| scores.score_bound(token, upper) >= least)
        };
        upper >= self.logit || self.score.is_some_and(by_score)
    }
}

impl<D: ScreenDot> Walk<'_, D> {
    /// The limit of each screened row. Uses `out`, and the memory of candidates.
    pub(super) fn limits(
        &self,
        work: &RowGroup<'_>,
        scratch: &mut TopLogitsScratch,
        states: &mut [RowState; GROUP],
        out: &mut [Ranked],
    ) {
        let (rows, vocab) = (work.requests.len(), work.table.rows());
        let (simd, listed) = (self.isa.lanes(), MAX_CANDIDATES + work.capacity);
        self.each(
            (
                Grid::new(out, work.capacity).tiles(1, work.capacity),
                Grid::new(&mut scratch.lower[..rows * vocab], vocab).tiles(1, vocab),
                Grid::new(&mut scratch.tokens[..rows * listed], listed).tiles(1, listed),
                Grid::new(&mut scratch.rescored[..rows * listed], listed).tiles(1, listed),
                Grid::new(&mut states[..rows], 1).tiles(1, 1),
            ),
            |_, row, (mut out, mut lower, mut tokens, mut rescored, mut state)| {
                let (request, state) = (&work.requests[row], &mut state.row(0)[0]);
                if state.hidden.is_none() {
                    return;
                }
                let best = rank::best_by_bounds(request, lower.row(0), out.row(0));
                if !best.iter().all(|ranked| ranked.is_token()) {
                    return;
                }
                let tokens = &mut tokens.row(0)[..best.len()];
                let logits = &mut rescored.row(0)[..best.len()];
                tokens.iter_mut().zip(&*best).for_each(|(token, best)| *token = best.token);
                rescore(simd, work.x.row(work.first + row), work.table, tokens, logits);
                best.iter_mut().zip(logits).for_each(|(best, logit)| best.logit = *logit);
                state.limit = Limit::of(request, best);
            },
        );
    }

    /// Closer bounds of the logits that reach their row's limit; returns how many these are.
    pub(super) fn closer_bounds(
        &self,
        work: &RowGroup<'_>,
        screen: &Screen,
        scratch: &mut TopLogitsScratch,
        states: &[RowState; GROUP],
    ) -> usize {
        let (rows, vocab, columns) = (work.requests.len(), work.table.rows(), screen.columns());
        let lower = Grid::new(&mut scratch.lower[..rows * vocab], vocab).tiles(rows, RUN);
        let upper = Grid::new(&mut scratch.upper[..rows * vocab], vocab).tiles(rows, RUN);
        let (planes, total) = (&scratch.planes, AtomicUsize::new(0));
        self.each((lower, upper), |_, _, (mut lower, mut upper)| {
            let tokens = lower.columns();
            for (row, state) in states.iter().enumerate().take(rows) {
                let Some(hidden) = &state.hidden else { continue };
                let planes = &planes[row * 2 * columns..][..2 * columns];
                let bounds = [lower.row(row), upper.row(row)];
                let is_left = |token, upper| state.limit.may_reach(token, upper);
                let row = (hidden, planes.split_at(columns).into());
                let count = screen.closer_bounds(self.isa, tokens.clone(), row, bounds, is_left);
                total.fetch_add(count, Ordering::Relaxed);
            }
        });
        total.into_inner()
    }
}
