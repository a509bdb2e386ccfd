//! A row and a KV head over a run of spans.

use std::ops::Range;

use fearless_simd::Simd;
use setun_ops::attention::SPAN;

use super::{
    head_view::HeadView,
    span::{SpanScores, memory_to_widen},
};
use crate::{
    scratch::{Scratch, TILE_QUERIES},
    split::Tile,
};

/// A row and a KV head.
pub(super) struct Pair<'a> {
    pub(super) view: HeadView<'a>,
    pub(super) queries: &'a [f32], // `[heads that share the KV head, d]`
    pub(super) visible: usize,
    pub(super) d: usize,
}

impl Pair<'_> {
    /// How many of some positions the row sees.
    pub(super) fn seen(&self, positions: Range<usize>) -> usize {
        self.visible.saturating_sub(positions.start).min(positions.len())
    }

    fn memory<'a>(&self, span: &'a mut [f32]) -> Option<&'a mut [f32]> {
        memory_to_widen(self.queries.len() / self.d, span)
    }

    /// Scores of all heads with the keys of a run.
    pub(super) fn score_run<S: Simd>(
        &self,
        simd: S,
        first: usize,
        memory: &mut [f32],
        scores: &mut Tile<'_, f32>,
    ) {
        let run = scores.columns();
        for start in run.clone().step_by(SPAN) {
            let len = self.seen(start..run.end.min(start + SPAN));
            if len == 0 {
                return;
            }
            let keys = self.view.keys(simd, start..start + len, self.memory(memory));
            for (tile, queries) in self.queries.chunks(TILE_QUERIES * self.d).enumerate() {
                let mut found: SpanScores = [[0.0; SPAN]; TILE_QUERIES];
                let (queries, count) = tile_of(queries, self.d);
                keys.score(simd, &queries[..count], len, &mut found);
                for (head, found) in found[..count].iter().enumerate() {
                    let scores = scores.row(tile * TILE_QUERIES + head);
                    scores[start - first..][..len].copy_from_slice(&found[..len]);
                }
            }
        }
    }

    /// Sums of the values of each span of a run, for all heads.
    pub(super) fn sum_run<S: Simd>(
        &self,
        simd: S,
        first: usize,
        scratch: &mut Scratch,
        weights: &mut Tile<'_, f32>,
        sums: &mut Tile<'_, f32>,
    ) {
        let (run, d) = (weights.columns(), self.d);
        let heads = weights.rows().len();
        for (index, start) in run.clone().step_by(SPAN).enumerate() {
            let len = self.seen(start..run.end.min(start + SPAN));
            if len == 0 {
                return;
            }
            let values = self.view.values(simd, start..start + len, self.memory(&mut scratch.span));
            for tile in (0..heads).step_by(TILE_QUERIES) {
                let heads = tile..heads.min(tile + TILE_QUERIES);
                let mut these: SpanScores = [[0.0; SPAN]; TILE_QUERIES];
                for (these, head) in these.iter_mut().zip(heads.clone()) {
                    these[..len].copy_from_slice(&weights.row(head)[start - first..][..len]);
                }
                let found = &mut scratch.span_sums[..heads.len() * d];
                values.sum(simd, &mut these[..heads.len()], len, found);
                for (found, head) in found.chunks_exact(d).zip(heads) {
                    sums.row(head)[index * d..][..d].copy_from_slice(found);
                }
            }
        }
    }
}

/// Queries `[heads, d]` one by one, and how many there are.
fn tile_of(queries: &[f32], d: usize) -> ([&[f32]; TILE_QUERIES], usize) {
    let mut tile: [&[f32]; TILE_QUERIES] = [&[]; TILE_QUERIES];
    tile.iter_mut().zip(queries.chunks_exact(d)).for_each(|(tile, query)| *tile = query);
    (tile, queries.len() / d)
}
