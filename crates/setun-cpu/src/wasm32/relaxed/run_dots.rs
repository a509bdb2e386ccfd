//! Relaxed-SIMD version of [`run_dots`](crate::ternary_dot::TernaryDot::run_dots).
//!
//! One loop for all lengths of runs, as in `simd128`, for each way in which engines make products.
//! As in [`ternary_dot`](super::ternary_dot), codes are masked in place, and a pair is at most
//! `2 × 8 × 128 = 2048`: never saturated, and the same on every engine. Two of them are added in 16 bits.

use std::arch::wasm32::{
    i16x8_add, i16x8_relaxed_dot_i8x16_i7x16, i16x8_splat, i32x4_extadd_pairwise_i16x8,
    i32x4_relaxed_dot_i8x16_i7x16_add, i32x4_shr, u8x16_splat, u16x8_shr, v128, v128_and,
};

use fearless_simd::wasm32::WasmSimd128;

use super::{
    Products, Relaxed,
    ternary_dot::{BYTES, activations, codes},
};
use crate::{
    ternary_dot::{ActivationBlock, CodeBlock, CodeDots, CodeRows},
    wasm32::simd128::run_dots::blocks_of_runs,
};

/// Activations of a block, `[half of a plane][plane]`.
type Halves = [[v128; 4]; 2];

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
    // One loop for both ways: rows tell them apart in little time.
    let of_row = |simd, row: &CodeBlock, x: &Halves| match isa.products {
        Products::Fours => plane_sums::<true>(simd, row, x),
        Products::Pairs => plane_sums::<false>(simd, row, x),
    };
    blocks_of_runs(isa.simd, weights, ahead, x, run, dots, halves, of_row);
}

#[inline(always)]
fn halves(simd: WasmSimd128, x: &ActivationBlock) -> Halves {
    [
        std::array::from_fn(|plane| activations::<0>(simd, x, plane)),
        std::array::from_fn(|plane| activations::<BYTES>(simd, x, plane)),
    ]
}

/// The sums of the planes of a block of a row.
#[inline(always)]
fn plane_sums<const FOURS: bool>(simd: WasmSimd128, row: &CodeBlock, x: &Halves) -> [v128; 4] {
    let masks = [u8x16_splat(0x03), u8x16_splat(0x0c)];
    let packed = [codes::<0>(simd, row), codes::<BYTES>(simd, row)];
    let mut sums = [i16x8_splat(0); 4];
    for (lower, x) in packed.into_iter().zip(x) {
        let shifted = [lower, u16x8_shr(lower, 4)];
        for (plane, (sum, &x)) in sums.iter_mut().zip(x).enumerate() {
            let codes = v128_and(shifted[plane / 2], masks[plane % 2]);
            *sum = if FOURS {
                i32x4_relaxed_dot_i8x16_i7x16_add(x, codes, *sum)
            } else {
                i16x8_add(*sum, i16x8_relaxed_dot_i8x16_i7x16(x, codes))
            };
        }
    }
    if !FOURS {
        sums = sums.map(|sum| i32x4_extadd_pairwise_i16x8(sum));
    }
    let [first, second, third, fourth] = sums;
    [first, i32x4_shr(second, 2), third, i32x4_shr(fourth, 2)]
}
