//! A few queries over neighbouring keys.
//!
//! Queries of one KV head meet a key together: it is read and widened once, and their sums hide
//! each other's latency. How many keys are taken at once follows the number of registers.

use fearless_simd::Simd;
use setun_ops::attention::{SPAN, inverse_sqrt};

use super::span::{Prefetch, SpanScores};
use crate::lanes::{Element, has_many_registers, tile_dots};
use crate::scratch::TILE_QUERIES;

/// Products of some queries `[d]` with keys, to the places of the span from `at` on.
pub(super) fn score<S: Simd, E: Element>(
    simd: S,
    queries: &[&[f32]],
    keys: &[E],
    ahead: &[u8],
    at: usize,
    scores: &mut SpanScores,
) {
    let wide = has_many_registers(simd);
    match *queries {
        [a] => score_tiles::<S, E, 1, 4>(simd, [a], keys, ahead, at, scores),
        [a, b] if wide => score_tiles::<S, E, 2, 4>(simd, [a, b], keys, ahead, at, scores),
        [a, b] => score_tiles::<S, E, 2, 2>(simd, [a, b], keys, ahead, at, scores),
        [a, b, c] if wide => score_tiles::<S, E, 3, 4>(simd, [a, b, c], keys, ahead, at, scores),
        [a, b, c] => score_tiles::<S, E, 3, 1>(simd, [a, b, c], keys, ahead, at, scores),
        [a, b, c, d] if wide => {
            score_tiles::<S, E, 4, 4>(simd, [a, b, c, d], keys, ahead, at, scores);
        }
        [a, b, c, d] => score_tiles::<S, E, 4, 1>(simd, [a, b, c, d], keys, ahead, at, scores),
        _ => unreachable!("a tile has 1 to {TILE_QUERIES} queries"),
    }
}

fn score_tiles<S: Simd, E: Element, const N: usize, const M: usize>(
    simd: S,
    queries: [&[f32]; N],
    keys: &[E],
    ahead: &[u8],
    at: usize,
    scores: &mut SpanScores,
) {
    let d = queries[0].len();
    simd.vectorize(
        #[inline(always)]
        || {
            let tiles = keys.chunks_exact(M * d);
            let (rest, in_tiles) = (tiles.remainder(), keys.len() / d / M * M);
            let mut prefetch = Prefetch::in_parts::<E>(ahead, M * d);
            for (tile, keys) in tiles.enumerate() {
                prefetch.next_part();
                let keys: [&[E]; M] = std::array::from_fn(|index| &keys[index * d..][..d]);
                put(tile_dots(simd, queries, keys), at + tile * M, scores);
            }
            for (index, key) in rest.chunks_exact(d).enumerate() {
                put(tile_dots(simd, queries, [key]), at + in_tiles + index, scores);
            }
        },
    );
}

/// Puts what a tile gives to the places of the span from `at` on.
#[inline(always)]
fn put<const N: usize, const M: usize>(dots: [[f32; M]; N], at: usize, scores: &mut SpanScores) {
    for (scores, dots) in scores.iter_mut().zip(dots) {
        scores[at..][..M].copy_from_slice(&dots);
    }
}

/// Makes products of a query `[d]` with a span's keys scores.
pub(super) fn scale<S: Simd>(simd: S, d: usize, scales: &[f32; SPAN], scores: &mut [f32; SPAN]) {
    let inverse_sqrt = inverse_sqrt(d);
    simd.vectorize(
        #[inline(always)]
        || {
            for (score, scale) in scores.iter_mut().zip(scales) {
                *score = *score * scale * inverse_sqrt;
            }
        },
    );
}
