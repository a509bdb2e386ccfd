//! `attention` over lanes; the plain form of the definition in [`setun_ops::attention`].
//!
//! Members claim pairs of a few rows and a group of query heads that share a KV head. A span of
//! 64 keys meets the queries of rows of one sequence and the group, then, when the maximum is
//! known, a span of values each query's weights. Where few rows meet a long context, members claim
//! spans instead.

mod by_spans;
mod head_view;
mod pair;
mod scores;
mod span;
mod sums;

use std::{iter, ops::Range};

use fearless_simd::prelude::*;
use setun_ops::{
    attention::SPAN,
    op::{BufferId, HeadShape},
};

pub(crate) use self::{by_spans::SpanScratch, head_view::LayerView};
use self::{
    head_view::HeadView,
    span::{SpanScores, memory_to_widen},
    sums::{add_sums, divide, total},
};
use crate::{
    lanes::{exp_minus, greatest},
    scratch::{Scratch, TILE_QUERIES, TILE_ROWS, TILE_SCORES},
    split::{Grid, Tile},
    step::{Buffers, Floats},
    ternary_dot::TernaryDot,
    walk::Walk,
};

impl<D: TernaryDot> Walk<'_, D> {
    pub(crate) fn attention(
        &self,
        buffers: &mut Buffers,
        scratch: &mut SpanScratch,
        qkv: BufferId,
        shape: HeadShape,
        cache: LayerView<'_>,
        out: BufferId,
    ) {
        let rows = self.inputs.rows();
        let longest = longest(&self.inputs.positions);
        buffers.write_floats(out, |buffers, out| {
            let qkv = buffers.floats(qkv);
            if by_spans::is_worth_it(shape, rows, longest, self.crew.threads()) {
                self.attention_by_spans(scratch, qkv, shape, cache, out);
            } else {
                self.attention_by_rows(qkv, shape, cache, longest, out);
            }
        });
    }

    /// Attention of rows and heads that each member does whole.
    fn attention_by_rows(
        &self,
        qkv: &Floats,
        shape: HeadShape,
        cache: LayerView<'_>,
        longest: usize,
        out: &mut Floats,
    ) {
        let (inputs, d, width) = (self.inputs, shape.head_dim, out.width);
        let (rows, served) = (inputs.rows(), shape.heads / shape.kv_heads);
        // Widening is shared in a group and by rows, but a short step needs parts for every member.
        let parts = rows * shape.kv_heads / (2 * self.crew.threads());
        let group = if parts > 0 { served } else { 1 };
        let tile_rows = parts.clamp(1, max_rows(longest));
        let out = Grid::new(&mut out.values[..rows * width], width).tiles(tile_rows, group * d);
        self.each(out, |scratch, _, mut tile| {
            let (rows, columns) = (tile.rows(), tile.columns());
            let slots = &inputs.slots[rows.clone()];
            let mut first = 0;
            for run in slots.chunk_by(|a, b| a == b) {
                let table = &inputs.block_tables[run[0] as usize];
                let head = HeadView { of: cache, table, kv_head: columns.start / d / served };
                let rows = rows.start + first..rows.start + first + run.len();
                let positions = &inputs.positions[rows.clone()];
                let queries = Queries { qkv, rows, first, columns: columns.clone(), positions, d };
                head.attend(self.isa.lanes(), &queries, scratch, &mut tile);
                first += run.len();
            }
        });
    }
}

/// Positions of the longest sequence.
fn longest(positions: &[u32]) -> usize {
    positions.iter().max().map_or(0, |&last| last as usize + 1)
}

/// How many rows of a sequence are taken together if it has this many positions.
fn max_rows(positions: usize) -> usize {
    (TILE_SCORES / positions.max(1)).clamp(1, TILE_ROWS)
}

/// The queries of some rows of a sequence, of heads that share a KV head.
struct Queries<'a> {
    qkv: &'a Floats,
    rows: Range<usize>,
    first: usize, // row in the tile
    columns: Range<usize>,
    positions: &'a [u32], // of the rows
    d: usize,
}

impl Queries<'_> {
    fn heads(&self) -> usize {
        self.columns.len() / self.d
    }

    fn len(&self) -> usize {
        self.rows.len() * self.heads()
    }

    /// Row and head of a query.
    fn place(&self, query: usize) -> (usize, usize) {
        (query / self.heads(), query % self.heads())
    }

    /// How many positions a query sees.
    fn visible(&self, query: usize) -> usize {
        self.positions[query / self.heads()] as usize + 1
    }

    /// How many positions any query sees.
    fn longest(&self) -> usize {
        longest(self.positions)
    }

    /// Neighbours that see equally much of the span from a position on, at least something, a few
    /// at a time.
    fn tiles(&self, start: usize) -> impl Iterator<Item = (Range<usize>, usize)> {
        let seen = move |query| self.visible(query).saturating_sub(start).min(SPAN);
        let mut next = 0;
        iter::from_fn(move || {
            next = (next..self.len()).find(|&query| seen(query) > 0)?;
            let (first, len) = (next, seen(next));
            let last = self.len().min(first + TILE_QUERIES);
            next = (first..last).find(|&query| seen(query) != len).unwrap_or(last);
            Some((first..next, len))
        })
    }

    /// The queries of a tile; beyond its last the last is repeated.
    fn of_tile(&self, tile: Range<usize>) -> [&[f32]; TILE_QUERIES] {
        std::array::from_fn(|index| {
            let (row, head) = self.place((tile.start + index).min(tile.end - 1));
            &self.qkv.row(self.rows.start + row)[self.columns.start + head * self.d..][..self.d]
        })
    }

    fn memory<'a>(&self, span: &'a mut [f32]) -> Option<&'a mut [f32]> {
        memory_to_widen(self.len(), span)
    }
}

impl HeadView<'_> {
    /// Attention of all queries, to their rows of the tile, `[heads, head_dim]`.
    fn attend<S: Simd>(
        self,
        simd: S,
        queries: &Queries<'_>,
        scratch: &mut Scratch,
        tile: &mut Tile<'_, f32>,
    ) {
        let (longest, d) = (queries.longest(), queries.d);
        self.score_spans(simd, queries, scratch);
        for (query, scores) in scratch.scores.chunks_mut(longest).take(queries.len()).enumerate() {
            let scores = &mut scores[..queries.visible(query)];
            simd.vectorize(
                #[inline(always)]
                || exp_minus(simd, scores, greatest(simd, scores)),
            );
        }
        (0..queries.rows.len()).for_each(|row| tile.row(queries.first + row).fill(0.0));
        self.add_spans(simd, queries, scratch, tile);
        for (query, weights) in scratch.scores.chunks(longest).take(queries.len()).enumerate() {
            let (row, head) = queries.place(query);
            let y = &mut tile.row(queries.first + row)[head * d..][..d];
            divide(simd, y, total(simd, &weights[..queries.visible(query)]));
        }
    }

    /// All scores, `[queries, longest]`.
    fn score_spans<S: Simd>(self, simd: S, queries: &Queries<'_>, scratch: &mut Scratch) {
        let longest = queries.longest();
        for start in (0..longest).step_by(SPAN) {
            let span = start..longest.min(start + SPAN);
            let keys = self.keys(simd, span, queries.memory(&mut scratch.span));
            for (tile, len) in queries.tiles(start) {
                let mut found: SpanScores = [[0.0; SPAN]; TILE_QUERIES];
                let these = queries.of_tile(tile.clone());
                keys.score(simd, &these[..tile.len()], len, &mut found);
                for (found, query) in found.iter().zip(tile) {
                    let scores = &mut scratch.scores[query * longest + start..][..len];
                    scores.copy_from_slice(&found[..len]);
                }
            }
        }
    }

    /// Adds the values of all spans, times their weights `[queries, longest]`.
    fn add_spans<S: Simd>(
        self,
        simd: S,
        queries: &Queries<'_>,
        scratch: &mut Scratch,
        out: &mut Tile<'_, f32>,
    ) {
        let (longest, d) = (queries.longest(), queries.d);
        for start in (0..longest).step_by(SPAN) {
            let span = start..longest.min(start + SPAN);
            let values = self.values(simd, span, queries.memory(&mut scratch.span));
            for (tile, len) in queries.tiles(start) {
                let mut weights: SpanScores = [[0.0; SPAN]; TILE_QUERIES];
                for (weights, query) in weights.iter_mut().zip(tile.clone()) {
                    let scores = &scratch.scores[query * longest + start..][..len];
                    weights[..len].copy_from_slice(scores);
                }
                let sums = &mut scratch.span_sums[..tile.len() * d];
                values.sum(simd, &mut weights[..tile.len()], len, sums);
                for (sums, query) in sums.chunks_exact(d).zip(tile) {
                    let (row, head) = queries.place(query);
                    add_sums(simd, sums, &mut out.row(queries.first + row)[head * d..][..d]);
                }
            }
        }
    }
}
