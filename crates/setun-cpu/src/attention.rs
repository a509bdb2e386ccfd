//! `attention` over lanes; the plain form of the definition in [`setun_ops::attention`].
//!
//! Members claim pairs of a row and a group of query heads that share a KV head. A span of 64
//! keys is widened once for the group and met with each query, then, when the maximum is known,
//! a span of values with each head's weights.

use fearless_simd::{f32x16, prelude::*};
use setun_ops::{
    BlockId,
    attention::{SPAN, inverse_sqrt, maximum},
    cache_values::CacheValues,
    host_cache::HostCache,
    op::{BufferId, HeadShape},
};

use crate::{
    lanes::{LANES, dots, exp_minus, sum, widen},
    scratch::Scratch,
    split::Grid,
    step::Buffers,
    ternary_dot::TernaryDot,
    walk::Walk,
};

/// Keys that meet a query together, so that their sums hide each other's latency.
const TILE_KEYS: usize = 4;

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
        // Widening is shared in a group, but a short step needs parts for every member.
        let enough = rows * shape.kv_heads >= 2 * self.crew.threads();
        let group = if enough { served } else { 1 };
        buffers.write_floats(out, |buffers, out| {
            let (qkv, width) = (buffers.floats(qkv), out.width);
            let out = Grid::new(&mut out.values[..rows * width], width).tiles(1, group * d);
            self.each(out, |scratch, _, mut tile| {
                let (row, columns) = (tile.rows().start, tile.columns());
                let head = HeadView {
                    cache,
                    layer,
                    table: &inputs.block_tables[inputs.slots[row] as usize],
                    kv_head: columns.start / d / served,
                };
                let queries = &qkv.row(row)[columns];
                let positions = inputs.positions[row] as usize + 1;
                attend(self.isa.lanes(), queries, positions, head, scratch, tile.row(0));
            });
        });
    }
}

/// Keys and values of one KV head of one sequence.
#[derive(Clone, Copy)]
struct HeadView<'a> {
    cache: &'a HostCache,
    layer: usize,
    table: &'a [BlockId],
    kv_head: usize,
}

/// Attention of a group of heads over the first `positions`. `queries` and `y` are
/// `[heads, head_dim]`.
fn attend<S: Simd>(
    simd: S,
    queries: &[f32],
    positions: usize,
    head: HeadView<'_>,
    scratch: &mut Scratch,
    y: &mut [f32],
) {
    let d = head.cache.spec().head_dim;
    let Scratch { scores, span, .. } = scratch;
    let scores = &mut scores[..queries.len() / d * positions];
    let span = &mut span[..SPAN * d];
    let layer = &head.cache.layers()[head.layer];
    let mut scales = [1.0; SPAN];

    for start in (0..positions).step_by(SPAN) {
        let len = SPAN.min(positions - start);
        let keys = &mut span[..len * d];
        head.widen(simd, &layer.keys, start, keys, &mut scales);
        for (q, scores) in queries.chunks_exact(d).zip(scores.chunks_exact_mut(positions)) {
            score(simd, q, keys, &scales, &mut scores[start..][..len]);
        }
    }
    for scores in scores.chunks_exact_mut(positions) {
        let max = scores.iter().copied().fold(f32::NEG_INFINITY, maximum);
        simd.vectorize(
            #[inline(always)]
            || exp_minus(simd, scores, max),
        );
    }

    y.fill(0.0);
    for start in (0..positions).step_by(SPAN) {
        let len = SPAN.min(positions - start);
        let values = &mut span[..len * d];
        head.widen(simd, &layer.values, start, values, &mut scales);
        for (weights, y) in scores.chunks_exact(positions).zip(y.chunks_exact_mut(d)) {
            let mut weights: [f32; SPAN] = span_of(&weights[start..][..len]);
            weights.iter_mut().zip(&scales).for_each(|(weight, scale)| *weight *= scale);
            add_span(simd, &weights[..len], values, y);
        }
    }
    for (weights, y) in scores.chunks_exact(positions).zip(y.chunks_exact_mut(d)) {
        let total = weights.chunks(SPAN).fold(0.0, |total, span| {
            total
                + simd.vectorize(
                    #[inline(always)]
                    || sum(simd, span),
                )
        });
        for y in y {
            *y /= total;
        }
    }
}

fn span_of(weights: &[f32]) -> [f32; SPAN] {
    let mut span = [0.0; SPAN];
    span[..weights.len()].copy_from_slice(weights);
    span
}

/// Scores of a query `[d]` with keys `[len, d]`.
fn score<S: Simd>(simd: S, q: &[f32], keys: &[f32], scales: &[f32; SPAN], scores: &mut [f32]) {
    let (d, inverse_sqrt) = (q.len(), inverse_sqrt(q.len()));
    let last = scores.len() - 1;
    simd.vectorize(
        #[inline(always)]
        || {
            for (tile, scores) in scores.chunks_mut(TILE_KEYS).enumerate() {
                let first = tile * TILE_KEYS;
                // Beyond the last key it is repeated.
                let keys: [&[f32]; TILE_KEYS] =
                    std::array::from_fn(|index| &keys[(first + index).min(last) * d..][..d]);
                let sums = dots(simd, q, keys);
                for ((score, sum), scale) in scores.iter_mut().zip(sums).zip(&scales[first..]) {
                    *score = sum * scale * inverse_sqrt;
                }
            }
        },
    );
}

/// `y += Σ weight × value` over a span, `values` `[len, d]`: the span's own sum first.
fn add_span<S: Simd>(simd: S, weights: &[f32], values: &[f32], y: &mut [f32]) {
    let d = y.len();
    simd.vectorize(
        #[inline(always)]
        || {
            let (chunks, rest) = y.as_chunks_mut::<LANES>();
            for (index, y) in chunks.iter_mut().enumerate() {
                let mut sums = f32x16::splat(simd, 0.0);
                for (weight, value) in weights.iter().zip(values.chunks_exact(d)) {
                    let value = f32x16::from_slice(simd, &value[index * LANES..][..LANES]);
                    sums += value * *weight;
                }
                (f32x16::from_slice(simd, y) + sums).store_slice(y);
            }
            let at = d - rest.len();
            for (index, y) in rest.iter_mut().enumerate() {
                let mut sum = 0.0;
                for (weight, value) in weights.iter().zip(values.chunks_exact(d)) {
                    sum += weight * value[at + index];
                }
                *y += sum;
            }
        },
    );
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
