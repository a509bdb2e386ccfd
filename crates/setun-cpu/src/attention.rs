//! `attention` over lanes; the plain form of the definition in [`setun_ops::attention`].
//!
//! Members claim pairs of a few rows and a group of query heads that share a KV head. A span of
//! 64 keys is widened once for rows of one sequence and the group, and met with each query, then,
//! when the maximum is known, a span of values with each head's weights.

mod span;

use std::ops::Range;

use fearless_simd::prelude::*;
use setun_ops::{
    BlockId,
    attention::{SPAN, maximum},
    cache_values::CacheValues,
    host_cache::HostCache,
    op::{BufferId, HeadShape},
};

use self::span::{add_span, score, span_of, total};
use crate::{
    lanes::{exp_minus, widen},
    scratch::Scratch,
    split::{Grid, Tile},
    step::{Buffers, Floats},
    ternary_dot::TernaryDot,
    walk::Walk,
};

/// Most rows of a sequence that meet its keys and values together.
const TILE_ROWS: usize = 8;

/// Scores of a query head that stay in the second-level cache, whatever the rows.
const TILE_SCORES: usize = 32 * 1024;

impl<D: TernaryDot> Walk<'_, D> {
    pub(crate) fn attention(
        &self,
        buffers: &mut Buffers,
        qkv: BufferId,
        shape: HeadShape,
        cache: &HostCache,
        layer: usize,
        out: BufferId,
    ) {
        let (inputs, d) = (self.inputs, shape.head_dim);
        let (rows, served) = (inputs.rows(), shape.heads / shape.kv_heads);
        // Widening is shared in a group and by rows, but a short step needs parts for every member.
        let parts = rows * shape.kv_heads / (2 * self.crew.threads());
        let group = if parts > 0 { served } else { 1 };
        let longest = inputs.positions.iter().max().map_or(0, |&last| last as usize + 1);
        let tile_rows = parts.clamp(1, most_rows(longest));
        buffers.write_floats(out, |buffers, out| {
            let (qkv, width) = (buffers.floats(qkv), out.width);
            let out = Grid::new(&mut out.values[..rows * width], width).tiles(tile_rows, group * d);
            self.each(out, |scratch, _, mut tile| {
                let (rows, columns) = (tile.rows(), tile.columns());
                let slots = &inputs.slots[rows.clone()];
                let mut first = 0;
                for run in slots.chunk_by(|a, b| a == b) {
                    let head = HeadView {
                        cache,
                        layer,
                        table: &inputs.block_tables[run[0] as usize],
                        kv_head: columns.start / d / served,
                    };
                    let rows = rows.start + first..rows.start + first + run.len();
                    let positions = &inputs.positions[rows.clone()];
                    let queries =
                        Queries { qkv, rows, first, columns: columns.clone(), positions, d };
                    head.attend(self.isa.lanes(), &queries, scratch, &mut tile);
                    first += run.len();
                }
            });
        });
    }
}

/// How many rows of a sequence are taken together if it has so many positions.
fn most_rows(positions: usize) -> usize {
    (TILE_SCORES / positions.max(1)).clamp(1, TILE_ROWS)
}

/// Most scores of a query head, of all rows that are taken together, up to so many positions.
pub(crate) fn most_scores(positions: usize) -> usize {
    positions.saturating_mul(TILE_ROWS).min(TILE_SCORES).max(positions)
}

/// Keys and values of one KV head of one sequence.
#[derive(Clone, Copy)]
struct HeadView<'a> {
    cache: &'a HostCache,
    layer: usize,
    table: &'a [BlockId],
    kv_head: usize,
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

    /// The query of each head of a row.
    fn of_row(&self, row: usize) -> impl Iterator<Item = &[f32]> {
        self.qkv.row(self.rows.start + row)[self.columns.clone()].chunks_exact(self.d)
    }

    /// How many positions a row sees.
    fn visible(&self, row: usize) -> usize {
        self.positions[row] as usize + 1
    }

    /// How many positions any row sees.
    fn longest(&self) -> usize {
        (0..self.rows.len()).map(|row| self.visible(row)).max().unwrap_or(0)
    }

    /// Rows that see something from a position on, and how much of the span there.
    fn within_span(&self, start: usize) -> impl Iterator<Item = (usize, usize)> {
        (0..self.rows.len())
            .map(move |row| (row, self.visible(row).saturating_sub(start).min(SPAN)))
            .filter(|&(_, len)| len > 0)
    }
}

impl HeadView<'_> {
    /// Attention of all queries, to their rows of the tile, `[heads, head_dim]`.
    fn attend<S: Simd>(
        &self,
        simd: S,
        queries: &Queries<'_>,
        scratch: &mut Scratch,
        tile: &mut Tile<'_, f32>,
    ) {
        let (longest, heads) = (queries.longest(), queries.heads());
        let Scratch { scores, span, .. } = scratch;
        let scores = &mut scores[..queries.rows.len() * heads * longest];
        let span = &mut span[..SPAN * queries.d];

        self.score_spans(simd, queries, span, scores);
        for (row, scores) in scores.chunks_exact_mut(heads * longest).enumerate() {
            for scores in scores.chunks_exact_mut(longest) {
                let scores = &mut scores[..queries.visible(row)];
                let max = scores.iter().copied().fold(f32::NEG_INFINITY, maximum);
                simd.vectorize(
                    #[inline(always)]
                    || exp_minus(simd, scores, max),
                );
            }
        }
        (0..queries.rows.len()).for_each(|row| tile.row(queries.first + row).fill(0.0));
        self.add_spans(simd, queries, span, scores, tile);
        for (row, weights) in scores.chunks_exact(heads * longest).enumerate() {
            let y = tile.row(queries.first + row).chunks_exact_mut(queries.d);
            for (weights, y) in weights.chunks_exact(longest).zip(y) {
                let total = total(simd, &weights[..queries.visible(row)]);
                for y in y {
                    *y /= total;
                }
            }
        }
    }

    /// All scores, `[rows, heads, longest]`.
    fn score_spans<S: Simd>(
        &self,
        simd: S,
        queries: &Queries<'_>,
        span: &mut [f32],
        scores: &mut [f32],
    ) {
        let (longest, heads) = (queries.longest(), queries.heads());
        let keys = &self.cache.layers()[self.layer].keys;
        let mut scales = [1.0; SPAN];
        for start in (0..longest).step_by(SPAN) {
            let span = &mut span[..SPAN.min(longest - start) * queries.d];
            self.widen(simd, keys, start, span, &mut scales);
            for (row, len) in queries.within_span(start) {
                let of_row = &mut scores[row * heads * longest..][..heads * longest];
                for (q, scores) in queries.of_row(row).zip(of_row.chunks_exact_mut(longest)) {
                    score(simd, q, span, &scales, &mut scores[start..][..len]);
                }
            }
        }
    }

    /// Adds the values of all spans, times their weights `[rows, heads, longest]`.
    fn add_spans<S: Simd>(
        &self,
        simd: S,
        queries: &Queries<'_>,
        span: &mut [f32],
        weights: &[f32],
        tile: &mut Tile<'_, f32>,
    ) {
        let (longest, heads) = (queries.longest(), queries.heads());
        let values = &self.cache.layers()[self.layer].values;
        let mut scales = [1.0; SPAN];
        for start in (0..longest).step_by(SPAN) {
            let span = &mut span[..SPAN.min(longest - start) * queries.d];
            self.widen(simd, values, start, span, &mut scales);
            for (row, len) in queries.within_span(start) {
                let of_row = &weights[row * heads * longest..][..heads * longest];
                let y = tile.row(queries.first + row).chunks_exact_mut(queries.d);
                for (weights, y) in of_row.chunks_exact(longest).zip(y) {
                    let mut weights: [f32; SPAN] = span_of(&weights[start..][..len]);
                    weights.iter_mut().zip(&scales).for_each(|(weight, scale)| *weight *= scale);
                    add_span(simd, &weights[..len], span, y);
                }
            }
        }
    }
}

impl HeadView<'_> {
    /// Widens the keys or values of neighbouring positions to `out` `[len, d]`, and sets their
    /// scales.
    fn widen<S: Simd>(
        &self,
        simd: S,
        values: &CacheValues,
        start: usize,
        out: &mut [f32],
        scales: &mut [f32; SPAN],
    ) {
        let d = self.cache.spec().head_dim;
        for ((position, out), scale) in (start..).zip(out.chunks_exact_mut(d)).zip(scales) {
            let index = self.cache.vector_index(self.table, self.kv_head, position);
            let range = index * d..(index + 1) * d;
            match values {
                CacheValues::F32(values) => out.copy_from_slice(&values[range]),
                CacheValues::F16(values) => widen(simd, &values[range], out),
                CacheValues::Int8 { codes, scales } => {
                    widen(simd, &codes[range], out);
                    *scale = scales[index];
                }
            }
        }
    }
}
