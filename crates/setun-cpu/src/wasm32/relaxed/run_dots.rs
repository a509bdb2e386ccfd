//! Relaxed-SIMD version of [`run_dots`](crate::ternary_dot::TernaryDot::run_dots).
//!
//! The loop of `simd128`, for both ways in which engines make products. Codes are shifted down
//! before, so that a pair is at most `2 × 2 × 128 = 512`: never saturated, and the same on every
//! engine. Where pairs are added in 16 bits, a lane takes 8 of them from a run, `4096`.

use std::arch::wasm32::{
    i16x8_add, i16x8_relaxed_dot_i8x16_i7x16, i32x4_extadd_pairwise_i16x8,
    i32x4_relaxed_dot_i8x16_i7x16_add, v128,
};

use super::{Products, Relaxed};
use crate::{
    ternary_dot::{CodeDots, CodeRows, TILE_OUTPUTS},
    wasm32::simd128::run_dots::{PlaneCodes, PlaneHalves, plane_by_plane},
};

/// Sums of four rows, of each run of columns.
#[inline(never)]
pub(super) fn run_dots(
    isa: Relaxed,
    weights: CodeRows<'_>,
    ahead: CodeRows<'_>,
    x: &[i8],
    run: usize,
    dots: &mut [CodeDots],
) {
    // One loop for both ways: to tell them apart for each plane takes little time.
    let add = |x, codes: &_, sums: &mut _| match isa.products {
        Products::Fours => add_plane(x, codes, sums, add_fours),
        Products::Pairs => add_plane(x, codes, sums, add_pairs),
    };
    let widen = |sum| match isa.products {
        Products::Fours => sum,
        Products::Pairs => i32x4_extadd_pairwise_i16x8(sum),
    };
    plane_by_plane(isa.simd, weights, ahead, x, run, dots, add, widen);
}

#[inline(always)]
fn add_plane(
    x: PlaneHalves,
    codes: &PlaneCodes,
    sums: &mut [v128; TILE_OUTPUTS],
    add: impl Fn(v128, v128, v128) -> v128,
) {
    for (x, codes) in x.into_iter().zip(codes) {
        for (sum, &codes) in sums.iter_mut().zip(codes) {
            *sum = add(x, codes, *sum);
        }
    }
}

#[inline(always)]
fn add_fours(x: v128, codes: v128, sum: v128) -> v128 {
    i32x4_relaxed_dot_i8x16_i7x16_add(x, codes, sum)
}

#[inline(always)]
fn add_pairs(x: v128, codes: v128, sum: v128) -> v128 {
    i16x8_add(sum, i16x8_relaxed_dot_i8x16_i7x16(x, codes))
}
