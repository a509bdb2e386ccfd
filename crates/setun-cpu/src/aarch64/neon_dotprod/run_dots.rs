//! NEON-dotprod version of [`run_dots`](crate::ternary_dot::TernaryDot::run_dots).
//!
//! As [`ternary_dot`](super::ternary_dot) for one row of activations, but sums end with a run of
//! columns. They are in 32 bits, where a block's cannot overflow: a lane takes 8 products of a plane
//! of codes of at most 32, `8 × 32 × 128 = 32,768`.

#![expect(unsafe_code, reason = "functions for a feature that no token of a dependency proves")]

use std::arch::aarch64::{
    int8x16_t, int32x4_t, vaddq_s32, vandq_u8, vdupq_n_s32, vdupq_n_u8, vshrq_n_s32, vshrq_n_u8,
    vsraq_n_s32,
};

use fearless_simd::aarch64::Neon;
use setun_ops::ternary::{BLOCK_COLUMNS, PLANE_COLUMNS};

use super::{NeonDotprod, dot4::dot4};
use crate::{
    aarch64::vectors::{activations, add_lanes, codes},
    ternary_dot::{ActivationBlock, CodeBlock, CodeDots, CodeRows, code_blocks},
};

/// Activations of a block, `[half of a plane][plane]`.
type Halves = [[int8x16_t; 4]; 2];

/// Sums of four rows, of each run of columns.
pub(super) fn run_dots(
    isa: NeonDotprod,
    weights: CodeRows<'_>,
    x: &[i8],
    run: usize,
    dots: &mut [CodeDots],
) {
    // SAFETY: `isa` exists only where the feature was detected.
    unsafe {
        match run {
            BLOCK_COLUMNS => blocks_of::<1>(isa.0, weights, x, dots),
            PLANE_COLUMNS => blocks_of::<4>(isa.0, weights, x, dots),
            _ => blocks_of::<2>(isa.0, weights, x, dots),
        }
    }
}

/// All blocks, each of one, two or four runs.
#[target_feature(enable = "neon,dotprod")]
fn blocks_of<const RUNS: usize>(
    neon: Neon,
    weights: CodeRows<'_>,
    x: &[i8],
    dots: &mut [CodeDots],
) {
    let (x, _) = x.as_chunks();
    let weights = code_blocks(weights, x.len());
    let dots = &mut dots.as_chunks_mut::<RUNS>().0[..x.len()];
    for (block, (x, dots)) in x.iter().zip(dots).enumerate() {
        let x = halves(neon, x);
        let a = plane_sums(neon, &weights[0][block], x);
        let b = plane_sums(neon, &weights[1][block], x);
        let c = plane_sums(neon, &weights[2][block], x);
        let d = plane_sums(neon, &weights[3][block], x);
        let [a, b, c, d] =
            [run_sums(a, RUNS), run_sums(b, RUNS), run_sums(c, RUNS), run_sums(d, RUNS)];
        for (run, dots) in dots.iter_mut().enumerate() {
            *dots = add_lanes(neon, [a[run], b[run], c[run], d[run]]);
        }
    }
}

#[target_feature(enable = "neon,dotprod")]
#[inline]
fn halves(neon: Neon, x: &ActivationBlock) -> Halves {
    let half = |half| {
        [
            activations(neon, x, 0, half),
            activations(neon, x, 1, half),
            activations(neon, x, 2, half),
            activations(neon, x, 3, half),
        ]
    };
    [half(0), half(1)]
}

/// The sums of the planes of a block of a row, 1, 4, 16 and 1 times too large.
#[target_feature(enable = "neon,dotprod")]
#[inline]
fn plane_sums(neon: Neon, block: &CodeBlock, x: Halves) -> [int32x4_t; 4] {
    let [mut first, mut second, mut third, mut fourth] = [vdupq_n_s32(0); 4];
    for half in 0..2 {
        let (packed, x) = (codes(neon, block, half), x[half]);
        first = dot4(first, vandq_u8(packed, vdupq_n_u8(0x03)), x[0]);
        second = dot4(second, vandq_u8(packed, vdupq_n_u8(0x0c)), x[1]);
        third = dot4(third, vandq_u8(packed, vdupq_n_u8(0x30)), x[2]);
        fourth = dot4(fourth, vshrq_n_u8::<6>(packed), x[3]);
    }
    [first, second, third, fourth]
}

/// The sums of one, two or four runs from those of planes, divided exactly.
#[target_feature(enable = "neon")]
#[inline]
fn run_sums(planes: [int32x4_t; 4], runs: usize) -> [int32x4_t; 4] {
    let [first, second, third, fourth] = planes;
    if runs == 4 {
        return [first, vshrq_n_s32::<2>(second), vshrq_n_s32::<4>(third), fourth];
    }
    let upper = vsraq_n_s32::<2>(first, second);
    let lower = vsraq_n_s32::<4>(fourth, third);
    if runs == 2 { [upper, lower, upper, lower] } else { [vaddq_s32(upper, lower); 4] }
}
