//! NEON-dotprod version of [`setun_ops::ternary_dot()`].
//!
//! `sdot` multiplies signed bytes and adds four neighbours to 32 bits. Masked in place, codes are
//! at most 2, 8 and 32, and their sums 1, 4 and 16 times too large: kept apart, they are divided
//! exactly at the end. The fourth plane, negative as signed bytes, is shifted down. A lane stays
//! in 32 bits up to `2^31 / (4 × 32 × 128)` loads of 64 columns, 8 million columns.
//!
//! Sums are named one by one: an optimizer unrolls loops with assembly in them late or not at all, and
//! an array that a loop walks is in memory.

#![expect(unsafe_code, reason = "functions for a feature that no token of a dependency proves")]

use std::arch::aarch64::{
    int8x16_t, int32x4_t, uint8x16_t, vaddq_s32, vandq_u8, vdupq_n_s32, vdupq_n_u8, vshrq_n_s32,
    vshrq_n_u8,
};

use fearless_simd::aarch64::Neon;
use setun_ops::ternary::BLOCK_COLUMNS;

use super::{NeonDotprod, dot4::dot4, run_dots::run_dots};
use crate::aarch64::vectors::{activations, add_lanes, codes};
use crate::ternary_dot::{
    CodeDots, CodeRows, TernaryDot, WideDots, WideRows, activation_blocks, code_blocks,
};

impl TernaryDot for NeonDotprod {
    type Lanes = Neon;
    type Columns = Neon;

    fn lanes(self) -> Neon {
        self.0
    }

    fn columns(self) -> Neon {
        self.0
    }

    fn code_dots(self, weights: CodeRows<'_>, _ahead: CodeRows<'_>, x: &[i8]) -> CodeDots {
        // SAFETY: `self` exists only where the feature was detected.
        unsafe { four_rows(self.0, weights, x) }
    }

    fn run_dots(
        self,
        weights: CodeRows<'_>,
        _ahead: CodeRows<'_>,
        x: &[i8],
        run: usize,
        dots: &mut [CodeDots],
    ) {
        run_dots(self, weights, x, run, dots);
    }

    fn code_dots_wide(
        self,
        weights: CodeRows<'_>,
        _ahead: CodeRows<'_>,
        x: WideRows<'_>,
    ) -> WideDots {
        // SAFETY: as above.
        unsafe { four_rows_wide(self.0, weights, x) }
    }
}

#[target_feature(enable = "neon,dotprod")]
fn four_rows(neon: Neon, weights: [&[u8]; 4], x: &[i8]) -> [i32; 4] {
    let (x, _) = x.as_chunks();
    let weights = code_blocks(weights, x.len());
    let [mut a, mut b, mut c, mut d] = [[vdupq_n_s32(0); 3]; 4];
    for (block, x) in x.iter().enumerate() {
        for half in 0..2 {
            let x = std::array::from_fn(|plane| activations(neon, x, plane, half));
            a = add_planes(a, codes(neon, &weights[0][block], half), x);
            b = add_planes(b, codes(neon, &weights[1][block], half), x);
            c = add_planes(c, codes(neon, &weights[2][block], half), x);
            d = add_planes(d, codes(neon, &weights[3][block], half), x);
        }
    }
    let sums = [a, b, c, d].map(|[by_1, by_4, by_16]| {
        vaddq_s32(by_1, vaddq_s32(vshrq_n_s32::<2>(by_4), vshrq_n_s32::<4>(by_16)))
    });
    add_lanes(neon, sums)
}

/// Adds the products of 64 codes of a row to its sums, which are 1, 4 and 16 times too large.
#[target_feature(enable = "neon,dotprod")]
#[inline]
fn add_planes(sums: [int32x4_t; 3], packed: uint8x16_t, x: [int8x16_t; 4]) -> [int32x4_t; 3] {
    let [by_1, by_4, by_16] = sums;
    let by_1 = dot4(by_1, vandq_u8(packed, vdupq_n_u8(0x03)), x[0]);
    let by_4 = dot4(by_4, vandq_u8(packed, vdupq_n_u8(0x0c)), x[1]);
    let by_16 = dot4(by_16, vandq_u8(packed, vdupq_n_u8(0x30)), x[2]);
    let by_1 = dot4(by_1, vshrq_n_u8::<6>(packed), x[3]);
    [by_1, by_4, by_16]
}

#[target_feature(enable = "neon,dotprod")]
fn four_rows_wide(neon: Neon, weights: [&[u8]; 4], x: [&[i8]; 4]) -> [[i32; 4]; 4] {
    let low_bits = vdupq_n_u8(0b11);
    let blocks = x[0].len() / BLOCK_COLUMNS;
    let x = activation_blocks(x, blocks);
    let weights = code_blocks(weights, blocks);
    let [mut e, mut f, mut g, mut h] = [[vdupq_n_s32(0); 4]; 4]; // a row of x each
    for block in 0..blocks {
        for half in 0..2 {
            let mut packed = weights.map(|row| codes(neon, &row[block], half));
            for plane in 0..4 {
                let codes = packed.map(|row| vandq_u8(row, low_bits));
                packed = packed.map(|row| vshrq_n_u8::<2>(row));
                e = add_rows(e, codes, activations(neon, &x[0][block], plane, half));
                f = add_rows(f, codes, activations(neon, &x[1][block], plane, half));
                g = add_rows(g, codes, activations(neon, &x[2][block], plane, half));
                h = add_rows(h, codes, activations(neon, &x[3][block], plane, half));
            }
        }
    }
    [e, f, g, h].map(|sums| add_lanes(neon, sums))
}

/// Adds the products of 16 codes of each of four rows.
#[target_feature(enable = "neon,dotprod")]
#[inline]
fn add_rows(sums: [int32x4_t; 4], codes: [uint8x16_t; 4], x: int8x16_t) -> [int32x4_t; 4] {
    let [a, b, c, d] = sums;
    [dot4(a, codes[0], x), dot4(b, codes[1], x), dot4(c, codes[2], x), dot4(d, codes[3], x)]
}
