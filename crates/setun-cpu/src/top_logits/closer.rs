//! Limits of rows, and closer bounds of what reaches them.

use std::sync::atomic::{AtomicUsize, Ordering};

use setun_ops::top_logits::Ranked;

use super::{
    GROUP, MAX_CANDIDATES, RUN, RowGroup, RowState, TopLogitsScratch, limit::Limit, rank, rescore,
};
use crate::{screen::Screen, screen_dot::ScreenDot, split::Grid, walk::Walk};

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
