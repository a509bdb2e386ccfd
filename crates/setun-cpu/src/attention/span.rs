//! A query, or its weights, over one span of keys or values.

use fearless_simd::{f32x16, prelude::*};
use setun_ops::attention::{SPAN, inverse_sqrt};

use crate::lanes::{LANES, dots, sum};

/// Keys that meet a query together, so that their sums hide each other's latency.
const TILE_KEYS: usize = 4;

/// The sum of all weights, span by span.
pub(super) fn total<S: Simd>(simd: S, weights: &[f32]) -> f32 {
    weights.chunks(SPAN).fold(0.0, |total, span| {
        total
            + simd.vectorize(
                #[inline(always)]
                || sum(simd, span),
            )
    })
}

pub(super) fn span_of(weights: &[f32]) -> [f32; SPAN] {
    let mut span = [0.0; SPAN];
    span[..weights.len()].copy_from_slice(weights);
    span
}

/// Scores of a query `[d]` with keys `[len, d]`.
pub(super) fn score<S: Simd>(
    simd: S,
    q: &[f32],
    keys: &[f32],
    scales: &[f32; SPAN],
    scores: &mut [f32],
) {
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
pub(super) fn add_span<S: Simd>(simd: S, weights: &[f32], values: &[f32], y: &mut [f32]) {
    let d = y.len();
    simd.vectorize(
        #[inline(always)]
        || {
            // Four vectors at once: each waits for its own last addition.
            let (fours, rest) = y.as_chunks_mut::<{ 4 * LANES }>();
            for (index, y) in fours.iter_mut().enumerate() {
                add_vectors::<S, 4>(simd, weights, &values[index * 4 * LANES..], d, y);
            }
            let at = d - rest.len();
            let (ones, rest) = rest.as_chunks_mut::<LANES>();
            for (index, y) in ones.iter_mut().enumerate() {
                add_vectors::<S, 1>(simd, weights, &values[at + index * LANES..], d, y);
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

/// The same for `N` vectors of `y`. `values` begins with those of the first position, those of
/// the next are `d` apart.
#[inline(always)]
fn add_vectors<S: Simd, const N: usize>(
    simd: S,
    weights: &[f32],
    values: &[f32],
    d: usize,
    y: &mut [f32],
) {
    let mut sums = [f32x16::splat(simd, 0.0); N];
    for (weight, values) in weights.iter().zip(values.chunks(d)) {
        let (vectors, _) = values[..N * LANES].as_chunks::<LANES>();
        for (sum, value) in sums.iter_mut().zip(vectors) {
            *sum += f32x16::from_slice(simd, value) * *weight;
        }
    }
    for (sum, y) in sums.into_iter().zip(y.as_chunks_mut::<LANES>().0) {
        (f32x16::from_slice(simd, y) + sum).store_slice(y);
    }
}
