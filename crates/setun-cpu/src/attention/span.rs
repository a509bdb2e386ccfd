//! A few queries, or their weights, over neighbouring keys or values.
//!
//! Queries of one KV head meet a key together: it is read and widened once, and their sums hide
//! each other's latency. How many keys are taken at once follows the number of registers.

use fearless_simd::{f32x16, prelude::*};
use half::f16;
use setun_ops::attention::{SPAN, inverse_sqrt};

use crate::lanes::{Element, LANES, fold_all, padded, sum};

/// Most queries that meet a key together.
pub(crate) const TILE_QUERIES: usize = 4;

/// Scores or weights of some queries over a span.
pub(super) type SpanScores = [[f32; SPAN]; TILE_QUERIES];

/// Keys or values `[len, d]` that are neighbours in memory.
#[derive(Clone, Copy)]
pub(super) enum Vectors<'a> {
    F32(&'a [f32]),
    F16(&'a [f16]),
    Int8(&'a [i8]),
}

impl Vectors<'_> {
    pub(super) fn elements(self) -> usize {
        match self {
            Self::F32(values) => values.len(),
            Self::F16(values) => values.len(),
            Self::Int8(values) => values.len(),
        }
    }
}

/// Products of some queries `[d]` with keys, to the places of the span from `at` on.
pub(super) fn score<S: Simd>(
    simd: S,
    queries: &[&[f32]],
    keys: Vectors<'_>,
    at: usize,
    scores: &mut SpanScores,
) {
    match keys {
        Vectors::F32(keys) => score_elements(simd, queries, keys, at, scores),
        Vectors::F16(keys) => score_elements(simd, queries, keys, at, scores),
        Vectors::Int8(keys) => score_elements(simd, queries, keys, at, scores),
    }
}

fn score_elements<S: Simd, E: Element>(
    simd: S,
    queries: &[&[f32]],
    keys: &[E],
    at: usize,
    scores: &mut SpanScores,
) {
    let wide = has_many_registers(simd);
    match *queries {
        [a] => score_tiles::<S, E, 1, 4>(simd, [a], keys, at, scores),
        [a, b] if wide => score_tiles::<S, E, 2, 4>(simd, [a, b], keys, at, scores),
        [a, b] => score_tiles::<S, E, 2, 2>(simd, [a, b], keys, at, scores),
        [a, b, c] if wide => score_tiles::<S, E, 3, 4>(simd, [a, b, c], keys, at, scores),
        [a, b, c] => score_tiles::<S, E, 3, 1>(simd, [a, b, c], keys, at, scores),
        [a, b, c, d] if wide => score_tiles::<S, E, 4, 4>(simd, [a, b, c, d], keys, at, scores),
        [a, b, c, d] => score_tiles::<S, E, 4, 1>(simd, [a, b, c, d], keys, at, scores),
        _ => unreachable!("a tile has 1 to {TILE_QUERIES} queries"),
    }
}

/// Whether sixteen sums of sixteen lanes have a register each.
#[inline(always)]
fn has_many_registers<S: Simd>(simd: S) -> bool {
    #[cfg(target_arch = "x86_64")]
    return matches!(simd.level(), fearless_simd::Level::Avx512(_));
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = simd;
        false
    }
}

fn score_tiles<S: Simd, E: Element, const N: usize, const M: usize>(
    simd: S,
    queries: [&[f32]; N],
    keys: &[E],
    at: usize,
    scores: &mut SpanScores,
) {
    let d = queries[0].len();
    simd.vectorize(
        #[inline(always)]
        || {
            let tiles = keys.chunks_exact(M * d);
            let (rest, in_tiles) = (tiles.remainder(), keys.len() / d / M * M);
            for (tile, keys) in tiles.enumerate() {
                let keys: [&[E]; M] = std::array::from_fn(|index| &keys[index * d..][..d]);
                put(dots(simd, queries, keys), at + tile * M, scores);
            }
            for (index, key) in rest.chunks_exact(d).enumerate() {
                put(dots(simd, queries, [key]), at + in_tiles + index, scores);
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

/// Products of each query with each key, in the order of a fold.
#[inline(always)]
fn dots<S: Simd, E: Element, const N: usize, const M: usize>(
    simd: S,
    queries: [&[f32]; N],
    keys: [&[E]; M],
) -> [[f32; M]; N] {
    let d = queries[0].len();
    let query_vectors = queries.map(|query| &query.as_chunks::<LANES>().0[..d / LANES]);
    let key_vectors = keys.map(|key| &key.as_chunks::<LANES>().0[..d / LANES]);
    let mut sums = [[f32x16::splat(simd, 0.0); M]; N];
    for index in 0..d / LANES {
        for m in 0..M {
            let key = E::widen(simd, &key_vectors[m][index]);
            for n in 0..N {
                sums[n][m] += f32x16::from_slice(simd, &query_vectors[n][index]) * key;
            }
        }
    }
    let rest = d / LANES * LANES..d;
    if !rest.is_empty() {
        for m in 0..M {
            let key = E::widen(simd, &padded(&keys[m][rest.clone()]));
            for n in 0..N {
                let query = f32x16::from_slice(simd, &padded(&queries[n][rest.clone()]));
                sums[n][m] += query * key;
            }
        }
    }
    let mut dots = [[0.0; M]; N];
    fold_all(sums.as_flattened(), dots.as_flattened_mut());
    dots
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

/// `sums += Σ weight × value` of some queries, `sums` `[queries, d]`, with weights from `at` on.
pub(super) fn add<S: Simd>(
    simd: S,
    weights: &[[f32; SPAN]],
    at: usize,
    values: Vectors<'_>,
    sums: &mut [f32],
) {
    match values {
        Vectors::F32(values) => add_elements(simd, weights, at, values, sums),
        Vectors::F16(values) => add_elements(simd, weights, at, values, sums),
        Vectors::Int8(values) => add_elements(simd, weights, at, values, sums),
    }
}

fn add_elements<S: Simd, E: Element>(
    simd: S,
    weights: &[[f32; SPAN]],
    at: usize,
    values: &[E],
    sums: &mut [f32],
) {
    let d = sums.len() / weights.len();
    let len = values.len() / d;
    let w = |query: usize| &weights[query][at..][..len];
    let wide = has_many_registers(simd);
    match weights.len() {
        1 => add_tiles::<S, E, 1, 4>(simd, [w(0)], values, sums),
        2 if wide => add_tiles::<S, E, 2, 4>(simd, [w(0), w(1)], values, sums),
        2 => add_tiles::<S, E, 2, 2>(simd, [w(0), w(1)], values, sums),
        3 if wide => add_tiles::<S, E, 3, 4>(simd, [w(0), w(1), w(2)], values, sums),
        3 => add_tiles::<S, E, 3, 1>(simd, [w(0), w(1), w(2)], values, sums),
        4 if wide => add_tiles::<S, E, 4, 4>(simd, [w(0), w(1), w(2), w(3)], values, sums),
        4 => add_tiles::<S, E, 4, 1>(simd, [w(0), w(1), w(2), w(3)], values, sums),
        _ => unreachable!("a tile has 1 to {TILE_QUERIES} queries"),
    }
}

fn add_tiles<S: Simd, E: Element, const N: usize, const M: usize>(
    simd: S,
    weights: [&[f32]; N],
    values: &[E],
    sums: &mut [f32],
) {
    let d = sums.len() / N;
    simd.vectorize(
        #[inline(always)]
        || {
            let (vectors, tiles) = (d / LANES, d / LANES / M);
            for tile in 0..tiles {
                add_vectors::<S, E, N, M>(simd, weights, values, tile * M * LANES, sums);
            }
            for vector in tiles * M..vectors {
                add_vectors::<S, E, N, 1>(simd, weights, values, vector * LANES, sums);
            }
            if d > vectors * LANES {
                add_rest(simd, weights, values, vectors * LANES, sums);
            }
        },
    );
}

/// Adds to `M` vectors from column `at` on.
#[inline(always)]
fn add_vectors<S: Simd, E: Element, const N: usize, const M: usize>(
    simd: S,
    weights: [&[f32]; N],
    values: &[E],
    at: usize,
    sums: &mut [f32],
) {
    let d = sums.len() / N;
    let len = values.len() / d;
    let weights = weights.map(|weights| &weights[..len]);
    let mut tile = [[f32x16::splat(simd, 0.0); M]; N];
    for n in 0..N {
        for m in 0..M {
            tile[n][m] = f32x16::from_slice(simd, &sums[n * d + at + m * LANES..][..LANES]);
        }
    }
    for (j, values) in values.chunks_exact(d).enumerate().take(len) {
        let (vectors, _) = values[at..][..M * LANES].as_chunks::<LANES>();
        for m in 0..M {
            let value = E::widen(simd, &vectors[m]);
            for n in 0..N {
                tile[n][m] += value * weights[n][j];
            }
        }
    }
    for n in 0..N {
        for m in 0..M {
            tile[n][m].store_slice(&mut sums[n * d + at + m * LANES..][..LANES]);
        }
    }
}

/// Adds to the columns from `at` on, fewer than a vector's.
#[inline(always)]
fn add_rest<S: Simd, E: Element, const N: usize>(
    simd: S,
    weights: [&[f32]; N],
    values: &[E],
    at: usize,
    sums: &mut [f32],
) {
    let d = sums.len() / N;
    for (weights, sums) in weights.iter().zip(sums.chunks_exact_mut(d)) {
        let sums = &mut sums[at..];
        let mut tile = f32x16::from_slice(simd, &padded(sums));
        for (weight, values) in weights.iter().zip(values.chunks_exact(d)) {
            tile += E::widen(simd, &padded(&values[at..])) * *weight;
        }
        let tile: [f32; LANES] = tile.into();
        sums.copy_from_slice(&tile[..sums.len()]);
    }
}

/// The sum of all weights, span by span.
pub(super) fn total<S: Simd>(simd: S, weights: &[f32]) -> f32 {
    weights.chunks(SPAN).fold(0.0, |total, span| total + span_total(simd, span))
}

/// The sum of a span's weights.
pub(super) fn span_total<S: Simd>(simd: S, weights: &[f32]) -> f32 {
    simd.vectorize(
        #[inline(always)]
        || sum(simd, weights),
    )
}

/// `y += sums`
pub(super) fn add_sums<S: Simd>(simd: S, sums: &[f32], y: &mut [f32]) {
    simd.vectorize(
        #[inline(always)]
        || y.iter_mut().zip(sums).for_each(|(y, sum)| *y += sum),
    );
}

/// `y /= total`
pub(super) fn divide<S: Simd>(simd: S, y: &mut [f32], total: f32) {
    simd.vectorize(
        #[inline(always)]
        || y.iter_mut().for_each(|y| *y /= total),
    );
}
