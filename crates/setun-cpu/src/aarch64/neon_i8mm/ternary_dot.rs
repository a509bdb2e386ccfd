//! NEON-i8mm twin of [`setun_ops::ternary_dot()`].
//!
//! For one row of activations, `usdot` multiplies unsigned with signed bytes and adds four
//! neighbours to 32 bits. Codes are masked in place and never shifted: products of the planes
//! are 1, 4, 16 and 64 times too large, and their sums, kept apart, are divided exactly at the
//! end. A lane stays in 32 bits up to `2^31 / (4 × 128 × 128)` loads of 64 columns, 2 million
//! columns.
//!
//! For four rows, `smmla` multiplies eight columns of two rows with those of two others: four
//! sums of eight products. A vector must then hold eight bytes of each of two rows, so codes are
//! interleaved once while packed, and activations for each plane.
//!
//! The instructions are assembly because their intrinsics, `vusdotq_s32` and `vmmlaq_s32`, are
//! not stable in Rust 1.95 (rust-lang/rust#117223). Sums are named one by one: an optimizer unrolls
//! loops with assembly in them late or not at all, and an array that a loop walks is in memory.

#![expect(unsafe_code, reason = "instructions without stable intrinsics, and their feature")]

use std::arch::{
    aarch64::{
        int8x16_t, int32x4_t, uint8x16_t, vaddq_s32, vandq_u8, vdupq_n_s32, vdupq_n_u8,
        vreinterpretq_s8_s64, vreinterpretq_s64_s8, vreinterpretq_s64_u8, vreinterpretq_u8_s64,
        vshrq_n_s32, vshrq_n_u8, vzip1q_s64, vzip2q_s64,
    },
    asm,
};

use fearless_simd::aarch64::Neon;
use setun_ops::ternary::BLOCK_COLUMNS;

use super::NeonI8mm;
use crate::aarch64::vectors::{activations, add_lanes, codes, lanes};
use crate::ternary_dot::{TILE_OUTPUTS, TILE_ROWS, TernaryDot, activation_blocks, code_blocks};

impl TernaryDot for NeonI8mm {
    type Lanes = Neon;
    type Columns = Neon;

    fn lanes(self) -> Neon {
        self.0
    }

    fn columns(self) -> Neon {
        self.0
    }

    fn code_dots(
        self,
        weights: [&[u8]; TILE_OUTPUTS],
        _ahead: [&[u8]; TILE_OUTPUTS],
        x: &[i8],
    ) -> [i32; TILE_OUTPUTS] {
        // SAFETY: `self` exists only where the feature was detected.
        unsafe { four_rows(self.0, weights, x) }
    }

    fn code_dots_wide(
        self,
        weights: [&[u8]; TILE_OUTPUTS],
        x: [&[i8]; TILE_ROWS],
    ) -> [[i32; TILE_OUTPUTS]; TILE_ROWS] {
        // SAFETY: as above.
        unsafe { four_rows_wide(self.0, weights, x) }
    }
}

#[target_feature(enable = "neon,i8mm")]
fn four_rows(neon: Neon, weights: [&[u8]; 4], x: &[i8]) -> [i32; 4] {
    let (x, _) = x.as_chunks();
    let weights = code_blocks(weights, x.len());
    let [mut a, mut b, mut c, mut d] = [[vdupq_n_s32(0); 4]; 4];
    for (block, x) in x.iter().enumerate() {
        for half in 0..2 {
            let x = std::array::from_fn(|plane| activations(neon, x, plane, half));
            a = add_planes(a, codes(neon, &weights[0][block], half), x);
            b = add_planes(b, codes(neon, &weights[1][block], half), x);
            c = add_planes(c, codes(neon, &weights[2][block], half), x);
            d = add_planes(d, codes(neon, &weights[3][block], half), x);
        }
    }
    let sums = [a, b, c, d].map(|[by_1, by_4, by_16, by_64]| {
        let low = vaddq_s32(by_1, vshrq_n_s32::<2>(by_4));
        vaddq_s32(low, vaddq_s32(vshrq_n_s32::<4>(by_16), vshrq_n_s32::<6>(by_64)))
    });
    add_lanes(neon, sums)
}

/// Adds the products of 64 codes of a row to the sums of its planes.
#[target_feature(enable = "neon,i8mm")]
#[inline]
fn add_planes(sums: [int32x4_t; 4], packed: uint8x16_t, x: [int8x16_t; 4]) -> [int32x4_t; 4] {
    let [by_1, by_4, by_16, by_64] = sums;
    [
        dot4(by_1, vandq_u8(packed, vdupq_n_u8(0x03)), x[0]),
        dot4(by_4, vandq_u8(packed, vdupq_n_u8(0x0c)), x[1]),
        dot4(by_16, vandq_u8(packed, vdupq_n_u8(0x30)), x[2]),
        dot4(by_64, vandq_u8(packed, vdupq_n_u8(0xc0)), x[3]),
    ]
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

/// Adds to each lane the products of the four codes and activations there.
#[target_feature(enable = "neon,i8mm")]
#[inline]
fn dot4(mut sums: int32x4_t, codes: uint8x16_t, x: int8x16_t) -> int32x4_t {
    // SAFETY: reads and writes the named registers alone; the function enables the feature.
    unsafe {
        asm!(
            "usdot {sums:v}.4s, {codes:v}.16b, {x:v}.16b",
            sums = inout(vreg) sums, codes = in(vreg) codes, x = in(vreg) x,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    sums
}

/// Adds the products of two rows of activations with two rows of codes below 128, eight columns
/// each: `[x0·w0, x0·w1, x1·w0, x1·w1]`.
#[target_feature(enable = "neon,i8mm")]
#[inline]
pub(super) fn dots_2x2(mut sums: int32x4_t, x: int8x16_t, codes: uint8x16_t) -> int32x4_t {
    // SAFETY: as in `dot4`.
    unsafe {
        asm!(
            "smmla {sums:v}.4s, {x:v}.16b, {codes:v}.16b",
            sums = inout(vreg) sums, x = in(vreg) x, codes = in(vreg) codes,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    sums
}
