//! NEON-i8mm version of [`setun_ops::ternary_dot()`].
//!
//! For one row of activations, the kernels are those of NEON-dotprod: `usdot` takes as many
//! instructions as `sdot`.
//!
//! For four rows, `smmla` multiplies eight columns of two rows with those of two others: four
//! sums of eight products. A vector must then hold eight bytes of each of two rows, so codes are
//! interleaved once while packed, and activations for each plane.
//!
//! The instruction is assembly because its intrinsic, `vmmlaq_s32`, is not stable in Rust 1.95
//! (rust-lang/rust#117223). Sums are named one by one: an optimizer unrolls loops with assembly in
//! them late or not at all, and an array that a loop walks is in memory.

#![expect(unsafe_code, reason = "an instruction without a stable intrinsic, and its feature")]

use std::arch::{
    aarch64::{
        int8x16_t, int32x4_t, uint8x16_t, vaddq_s32, vandq_u8, vdupq_n_s32, vdupq_n_u8,
        vreinterpretq_s8_s64, vreinterpretq_s64_s8, vreinterpretq_s64_u8, vreinterpretq_u8_s64,
        vshrq_n_u8, vzip1q_s64, vzip2q_s64,
    },
    asm,
};

use fearless_simd::aarch64::Neon;
use setun_ops::ternary::BLOCK_COLUMNS;

use super::NeonI8mm;
use crate::aarch64::vectors::{activations, codes, lanes};
use crate::ternary_dot::{
    CodeDots, CodeRows, TernaryDot, WideDots, WideRows, activation_blocks, code_blocks,
};

impl TernaryDot for NeonI8mm {
    type Lanes = Neon;
    type Columns = Neon;

    fn lanes(self) -> Neon {
        self.0.lanes()
    }

    fn columns(self) -> Neon {
        self.0.columns()
    }

    fn code_dots(self, weights: CodeRows<'_>, ahead: CodeRows<'_>, x: &[i8]) -> CodeDots {
        self.0.code_dots(weights, ahead, x)
    }

    fn run_dots(
        self,
        weights: CodeRows<'_>,
        ahead: CodeRows<'_>,
        x: &[i8],
        run: usize,
        dots: &mut [CodeDots],
    ) {
        self.0.run_dots(weights, ahead, x, run, dots);
    }

    fn code_dots_wide(
        self,
        weights: CodeRows<'_>,
        _ahead: CodeRows<'_>,
        x: WideRows<'_>,
    ) -> WideDots {
        // SAFETY: `self` exists only where the feature was detected.
        unsafe { four_rows_wide(self.lanes(), weights, x) }
    }
}

#[target_feature(enable = "neon,i8mm")]
fn four_rows_wide(neon: Neon, weights: [&[u8]; 4], x: [&[i8]; 4]) -> [[i32; 4]; 4] {
    let low_bits = vdupq_n_u8(0b11);
    let blocks = x[0].len() / BLOCK_COLUMNS;
    let x = activation_blocks(x, blocks);
    let weights = code_blocks(weights, blocks);
    let [mut upper, mut lower] = [[[vdupq_n_s32(0); 2]; 2]; 2]; // a pair of rows of x each
    for block in 0..blocks {
        for half in 0..2 {
            let [a, b, c, d] = weights.map(|row| codes(neon, &row[block], half));
            let mut packed = [pair_codes(a, b), pair_codes(c, d)];
            for plane in 0..4 {
                let codes = packed.map(|pair| pair.map(|rows| vandq_u8(rows, low_bits)));
                packed = packed.map(|pair| pair.map(|rows| vshrq_n_u8::<2>(rows)));
                let [e, f, g, h] = x.map(|x| activations(neon, &x[block], plane, half));
                upper = add_pair(upper, codes, pair_activations(e, f));
                lower = add_pair(lower, codes, pair_activations(g, h));
            }
        }
    }
    let [e, f] = split_pair(neon, upper);
    let [g, h] = split_pair(neon, lower);
    [e, f, g, h]
}

/// Adds the products of 16 columns of two rows of activations with those of two pairs of rows of
/// codes. Sums are `[pair of rows of codes][first or second eight columns]`.
#[target_feature(enable = "neon,i8mm")]
#[inline]
fn add_pair(
    sums: [[int32x4_t; 2]; 2],
    codes: [[uint8x16_t; 2]; 2],
    x: [int8x16_t; 2],
) -> [[int32x4_t; 2]; 2] {
    let [[a, b], [c, d]] = sums;
    [
        [dots_2x2(a, x[0], codes[0][0]), dots_2x2(b, x[1], codes[0][1])],
        [dots_2x2(c, x[0], codes[1][0]), dots_2x2(d, x[1], codes[1][1])],
    ]
}

/// The four sums of each of the two rows of activations.
#[target_feature(enable = "neon")]
#[inline]
fn split_pair(neon: Neon, sums: [[int32x4_t; 2]; 2]) -> [[i32; 4]; 2] {
    let [[a, b, e, f], [c, d, g, h]] =
        sums.map(|[first, second]| lanes(neon, vaddq_s32(first, second)));
    [[a, b, c, d], [e, f, g, h]]
}

/// The first eight bytes of two rows in one vector, and the second eight in another.
#[target_feature(enable = "neon")]
#[inline]
pub(super) fn pair_codes(upper: uint8x16_t, lower: uint8x16_t) -> [uint8x16_t; 2] {
    let (upper, lower) = (vreinterpretq_s64_u8(upper), vreinterpretq_s64_u8(lower));
    [vreinterpretq_u8_s64(vzip1q_s64(upper, lower)), vreinterpretq_u8_s64(vzip2q_s64(upper, lower))]
}

/// The same for activations.
#[target_feature(enable = "neon")]
#[inline]
pub(super) fn pair_activations(upper: int8x16_t, lower: int8x16_t) -> [int8x16_t; 2] {
    let (upper, lower) = (vreinterpretq_s64_s8(upper), vreinterpretq_s64_s8(lower));
    [vreinterpretq_s8_s64(vzip1q_s64(upper, lower)), vreinterpretq_s8_s64(vzip2q_s64(upper, lower))]
}

/// Adds the products of two rows of activations with two rows of codes below 128, eight columns
/// each: `[x0·w0, x0·w1, x1·w0, x1·w1]`.
#[target_feature(enable = "neon,i8mm")]
#[inline]
pub(super) fn dots_2x2(mut sums: int32x4_t, x: int8x16_t, codes: uint8x16_t) -> int32x4_t {
    // SAFETY: reads and writes the named registers alone; the function enables the feature.
    unsafe {
        asm!(
            "smmla {sums:v}.4s, {x:v}.16b, {codes:v}.16b",
            sums = inout(vreg) sums, x = in(vreg) x, codes = in(vreg) codes,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    sums
}
