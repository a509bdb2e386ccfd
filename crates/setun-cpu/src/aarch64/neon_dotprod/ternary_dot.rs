//! NEON-dotprod twin of [`setun_ops::ternary_dot()`].
//!
//! `sdot` multiplies signed bytes and adds four neighbours to 32 bits. Masked in place, codes are
//! at most 2, 8 and 32, and their sums 1, 4 and 16 times too large: kept apart, they are divided
//! exactly at the end. The fourth plane, negative as signed bytes, is shifted down. A lane stays
//! in 32 bits up to `2^31 / (4 × 32 × 128)` loads of 64 columns, 8 million columns.
//!
//! The instruction is assembly because its intrinsic, `vdotq_s32`, is not stable in Rust 1.95
//! (rust-lang/rust#117224).

#![expect(unsafe_code, reason = "an instruction without a stable intrinsic, and its feature")]

use std::arch::{
    aarch64::{
        int8x16_t, int32x4_t, uint8x16_t, vaddq_s32, vandq_u8, vdupq_n_s32, vdupq_n_u8,
        vshrq_n_s32, vshrq_n_u8,
    },
    asm,
};

use fearless_simd::aarch64::Neon;
use setun_ops::ternary::{BLOCK_BYTES, BLOCK_COLUMNS, PLANE_COLUMNS};

use super::NeonDotprod;
use crate::aarch64::vectors::{BYTES, activations, add_lanes, codes};
use crate::ternary_dot::{TILE_OUTPUTS, TILE_ROWS, TernaryDot};

impl TernaryDot for NeonDotprod {
    type Lanes = Neon;

    fn lanes(self) -> Neon {
        self.0
    }

    fn code_dots(self, weights: [&[u8]; TILE_OUTPUTS], x: &[i8]) -> [i32; TILE_OUTPUTS] {
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

#[target_feature(enable = "neon,dotprod")]
fn four_rows(neon: Neon, weights: [&[u8]; 4], x: &[i8]) -> [i32; 4] {
    let masks = [0x03, 0x0c, 0x30].map(|mask| vdupq_n_u8(mask));
    let weights = weights.map(|row| &row[..x.len() / 4]);
    let mut sums = [[vdupq_n_s32(0); 3]; 4]; // [row][scale of the sum: 1, 4, 16]
    for (block, x) in x.chunks_exact(BLOCK_COLUMNS).enumerate() {
        for half in [0, BYTES] {
            let x: [int8x16_t; 4] =
                std::array::from_fn(|plane| activations(neon, &x[plane * PLANE_COLUMNS + half..]));
            for (sums, row) in sums.iter_mut().zip(&weights) {
                let packed = codes(neon, &row[block * BLOCK_BYTES + half..]);
                for ((sum, mask), x) in sums.iter_mut().zip(masks).zip(x) {
                    *sum = dot4(*sum, vandq_u8(packed, mask), x);
                }
                sums[0] = dot4(sums[0], vshrq_n_u8::<6>(packed), x[3]);
            }
        }
    }
    let sums = sums.map(|[by_1, by_4, by_16]| {
        vaddq_s32(by_1, vaddq_s32(vshrq_n_s32::<2>(by_4), vshrq_n_s32::<4>(by_16)))
    });
    add_lanes(neon, sums)
}

#[target_feature(enable = "neon,dotprod")]
fn four_rows_wide(neon: Neon, weights: [&[u8]; 4], x: [&[i8]; 4]) -> [[i32; 4]; 4] {
    let low_bits = vdupq_n_u8(0b11);
    let columns = x[0].len();
    let x = x.map(|x| &x[..columns]);
    let weights = weights.map(|row| &row[..columns / 4]);
    let mut sums = [[vdupq_n_s32(0); 4]; 4]; // [row of x][row of weights]
    for block in 0..columns / BLOCK_COLUMNS {
        for half in [0, BYTES] {
            let mut packed = weights.map(|row| codes(neon, &row[block * BLOCK_BYTES + half..]));
            for plane in 0..4 {
                let at = block * BLOCK_COLUMNS + plane * PLANE_COLUMNS + half;
                let codes = packed.map(|row| vandq_u8(row, low_bits));
                packed = packed.map(|row| vshrq_n_u8::<2>(row));
                for (sums, x) in sums.iter_mut().zip(x) {
                    let x = activations(neon, &x[at..]);
                    for (sum, codes) in sums.iter_mut().zip(codes) {
                        *sum = dot4(*sum, codes, x);
                    }
                }
            }
        }
    }
    sums.map(|sums| add_lanes(neon, sums))
}

/// Adds to each lane the products of the four codes and activations there; codes below 128.
#[target_feature(enable = "neon,dotprod")]
#[inline]
fn dot4(mut sums: int32x4_t, codes: uint8x16_t, x: int8x16_t) -> int32x4_t {
    // SAFETY: reads and writes the named registers alone; the function enables the feature.
    unsafe {
        asm!(
            "sdot {sums:v}.4s, {codes:v}.16b, {x:v}.16b",
            sums = inout(vreg) sums, codes = in(vreg) codes, x = in(vreg) x,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    sums
}
