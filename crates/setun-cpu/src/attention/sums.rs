//! The weights of a few queries over neighbouring values, and sums of spans.

use fearless_simd::{f32x16, prelude::*};
use setun_ops::attention::SPAN;

use super::span::Prefetch;
use crate::lanes::{Element, LANES, has_many_registers, padded, sum};
use crate::scratch::TILE_QUERIES;

/// `sums += Σ weight × value` of some queries, `sums` `[queries, d]`, with weights from `at` on.
pub(super) fn add<S: Simd, E: Element>(
    simd: S,
    weights: &[[f32; SPAN]],
    at: usize,
    values: &[E],
    ahead: &[u8],
    sums: &mut [f32],
) {
    let d = sums.len() / weights.len();
    let len = values.len() / d;
    let w = |query: usize| &weights[query][at..][..len];
    let wide = has_many_registers(simd);
    match weights.len() {
        1 => add_tiles::<S, E, 1, 4>(simd, [w(0)], values, ahead, sums),
        2 if wide => add_tiles::<S, E, 2, 4>(simd, [w(0), w(1)], values, ahead, sums),
        2 => add_tiles::<S, E, 2, 2>(simd, [w(0), w(1)], values, ahead, sums),
        3 if wide => add_tiles::<S, E, 3, 4>(simd, [w(0), w(1), w(2)], values, ahead, sums),
        3 => add_tiles::<S, E, 3, 1>(simd, [w(0), w(1), w(2)], values, ahead, sums),
        4 if wide => add_tiles::<S, E, 4, 4>(simd, [w(0), w(1), w(2), w(3)], values, ahead, sums),
        4 => add_tiles::<S, E, 4, 1>(simd, [w(0), w(1), w(2), w(3)], values, ahead, sums),
        _ => unreachable!("a tile has 1 to {TILE_QUERIES} queries"),
    }
}

fn add_tiles<S: Simd, E: Element, const N: usize, const M: usize>(
    simd: S,
    weights: [&[f32]; N],
    values: &[E],
    ahead: &[u8],
    sums: &mut [f32],
) {
    let d = sums.len() / N;
    simd.vectorize(
        #[inline(always)]
        || {
            let (vectors, tiles) = (d / LANES, d / LANES / M);
            for tile in 0..tiles {
                // Asked for once, by the first tile.
                let ahead = if tile == 0 { ahead } else { &[] };
                add_vectors::<S, E, N, M>(simd, weights, values, ahead, tile * M * LANES, sums);
            }
            for vector in tiles * M..vectors {
                add_vectors::<S, E, N, 1>(simd, weights, values, &[], vector * LANES, sums);
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
    ahead: &[u8],
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
    let mut prefetch = Prefetch::in_parts::<E>(ahead, d);
    // A range, so that `weights[n][j]` needs no bounds check.
    for (j, values) in (0..len).zip(values.chunks_exact(d)) {
        prefetch.next_part();
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
