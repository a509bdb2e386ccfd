//! NEON version of [`run_dots`](crate::ternary_dot::TernaryDot::run_dots).
//!
//! As [`ternary_dot`](super::ternary_dot) for one row of activations, but sums end with a run of
//! columns. They stay in 16 bits until those of four rows lie in one vector: a product is at most
//! `2 × 128 = 256`, a lane takes 16 of them from a block, and four lanes are added:
//! `64 × 256 = 16,384`.

use std::arch::aarch64::{
    int16x8_t, int32x4_t, vandq_u8, vdupq_n_s16, vdupq_n_u8, vget_low_s8, vmlal_high_s8, vmlal_s8,
    vpaddlq_s16, vpaddq_s16, vreinterpretq_s8_u8, vshrq_n_u8,
};

use fearless_simd::aarch64::Neon;
use setun_ops::ternary::{BLOCK_COLUMNS, PLANE_COLUMNS};

use crate::{
    aarch64::vectors::{activations, codes, lanes},
    ternary_dot::{ActivationBlock, CodeBlock, CodeDots, CodeRows, code_blocks},
};

/// Sums of four rows, of each run of columns.
pub(super) fn run_dots(
    neon: Neon,
    weights: CodeRows<'_>,
    x: &[i8],
    run: usize,
    dots: &mut [CodeDots],
) {
    match run {
        BLOCK_COLUMNS => whole_blocks(neon, weights, x, dots),
        PLANE_COLUMNS => planes(neon, weights, x, dots),
        _ => halves(neon, weights, x, dots),
    }
}

fearless_simd::kernel!(
    #[inline]
    fn whole_blocks(neon: Neon, weights: [&[u8]; 4], x: &[i8], dots: &mut [[i32; 4]]) {
        blocks_of::<1>(neon, weights, x, dots);
    }
);

fearless_simd::kernel!(
    #[inline]
    fn halves(neon: Neon, weights: [&[u8]; 4], x: &[i8], dots: &mut [[i32; 4]]) {
        blocks_of::<2>(neon, weights, x, dots);
    }
);

fearless_simd::kernel!(
    #[inline]
    fn planes(neon: Neon, weights: [&[u8]; 4], x: &[i8], dots: &mut [[i32; 4]]) {
        blocks_of::<4>(neon, weights, x, dots);
    }
);

/// All blocks, each of one, two or four runs.
#[target_feature(enable = "neon")]
#[inline]
fn blocks_of<const RUNS: usize>(neon: Neon, weights: [&[u8]; 4], x: &[i8], dots: &mut [[i32; 4]]) {
    let (x, _) = x.as_chunks();
    let weights = code_blocks(weights, x.len());
    let dots = &mut dots.as_chunks_mut::<RUNS>().0[..x.len()];
    for (block, (x, dots)) in x.iter().zip(dots).enumerate() {
        one_block(neon, weights.map(|row| &row[block]), x, dots);
    }
}

#[target_feature(enable = "neon")]
#[inline]
fn one_block<const RUNS: usize>(
    neon: Neon,
    weights: [&CodeBlock; 4],
    x: &ActivationBlock,
    dots: &mut [[i32; 4]; RUNS],
) {
    let low_bits = vdupq_n_u8(0b11);
    let mut packed = [0, 1].map(|half| weights.map(|row| codes(neon, row, half)));
    let planes = BLOCK_COLUMNS / PLANE_COLUMNS / RUNS;
    for (run, dots) in dots.iter_mut().enumerate() {
        let mut sums = [vdupq_n_s16(0); 4];
        for plane in run * planes..(run + 1) * planes {
            for (half, packed) in packed.iter_mut().enumerate() {
                let x = activations(neon, x, plane, half);
                for (sum, packed) in sums.iter_mut().zip(packed) {
                    let codes = vreinterpretq_s8_u8(vandq_u8(*packed, low_bits));
                    *packed = vshrq_n_u8::<2>(*packed);
                    *sum = vmlal_s8(*sum, vget_low_s8(codes), vget_low_s8(x));
                    *sum = vmlal_high_s8(*sum, codes, x);
                }
            }
        }
        *dots = lanes(neon, fold(sums));
    }
}

/// From 16-bit sums of four rows to the sum of each.
#[target_feature(enable = "neon")]
#[inline]
fn fold(rows: [int16x8_t; 4]) -> int32x4_t {
    let [a, b, c, d] = rows;
    vpaddlq_s16(vpaddq_s16(vpaddq_s16(a, b), vpaddq_s16(c, d)))
}
