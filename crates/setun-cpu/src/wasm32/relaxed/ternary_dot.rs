//! Relaxed-SIMD twin of [`setun_ops::ternary_dot()`].
//!
//! `i32x4.relaxed_dot_i8x16_i7x16_add_s` multiplies 16 activations with 16 values that must lie
//! in 0..=127, and engines may saturate the 16-bit sums of pairs. Masked in place, codes are at
//! most 2, 8 and 32, so a pair is at most `2 × 32 × 128 = 8192`: never saturated, and the same
//! on every engine. Sums of the second and third plane are then 4 and 16 times too large, and
//! divided exactly at the end; the fourth plane is shifted down. They stay in 32 bits up to
//! `2^31 / (32 × 128 × 4)` blocks, 16 million columns.

use std::arch::wasm32::{
    i32x4_add, i32x4_relaxed_dot_i8x16_i7x16_add, i32x4_shr, i32x4_splat, u8x16_splat, u16x8_shr,
    v128, v128_and,
};

use fearless_simd::{i8x16, i32x4, prelude::*, u8x16, wasm32::WasmSimd128};
use setun_ops::ternary::{BLOCK_BYTES, BLOCK_COLUMNS, PLANE_COLUMNS};

use super::Relaxed;
use crate::ternary_dot::{TILE_OUTPUTS, TILE_ROWS, TernaryDot};

/// Bytes of a vector.
const BYTES: usize = 16;

impl TernaryDot for Relaxed {
    type Lanes = WasmSimd128;
    type Columns = Self;

    fn lanes(self) -> WasmSimd128 {
        self.0
    }

    fn columns(self) -> Self {
        self
    }

    fn code_dots(
        self,
        weights: [&[u8]; TILE_OUTPUTS],
        _ahead: &[u8],
        x: &[i8],
    ) -> [i32; TILE_OUTPUTS] {
        four_rows(self.0, weights, x)
    }

    fn code_dots_wide(
        self,
        [a, b, c, d]: [&[u8]; TILE_OUTPUTS],
        x: [&[i8]; TILE_ROWS],
    ) -> [[i32; TILE_OUTPUTS]; TILE_ROWS] {
        // Two rows at a time: engines have sixteen registers.
        let upper = two_rows_wide(self.0, [a, b], x);
        let lower = two_rows_wide(self.0, [c, d], x);
        std::array::from_fn(|row| [upper[0][row], upper[1][row], lower[0][row], lower[1][row]])
    }
}

#[inline(always)]
fn four_rows(simd: WasmSimd128, weights: [&[u8]; 4], x: &[i8]) -> [i32; 4] {
    let masks = [u8x16_splat(0x03), u8x16_splat(0x0c), u8x16_splat(0x30)];
    let weights = weights.map(|row| &row[..x.len() / 4]);
    // [row][scale of the sum: 1, 4, 16]
    let mut sums = [[i32x4_splat(0); 3]; 4];
    for (block, x) in x.chunks_exact(BLOCK_COLUMNS).enumerate() {
        for half in [0, BYTES] {
            let x = activations(simd, x, half);
            for (sums, row) in sums.iter_mut().zip(&weights) {
                let packed = bytes(simd, &row[block * BLOCK_BYTES + half..]);
                for ((sum, mask), x) in sums.iter_mut().zip(masks).zip(x) {
                    *sum = i32x4_relaxed_dot_i8x16_i7x16_add(x, v128_and(packed, mask), *sum);
                }
                let last = v128_and(u16x8_shr(packed, 6), masks[0]);
                sums[0] = i32x4_relaxed_dot_i8x16_i7x16_add(x[3], last, sums[0]);
            }
        }
    }
    sums.map(|[by_1, by_4, by_16]| {
        // Sums scaled by a power of two shift down exactly, lane by lane.
        let sum = i32x4_add(by_1, i32x4_add(i32x4_shr(by_4, 2), i32x4_shr(by_16, 4)));
        add_lanes(simd, sum)
    })
}

#[inline(always)]
fn two_rows_wide(simd: WasmSimd128, weights: [&[u8]; 2], x: [&[i8]; 4]) -> [[i32; 4]; 2] {
    let low_bits = u8x16_splat(0b11);
    let columns = x[0].len();
    let x = x.map(|x| &x[..columns]);
    let weights = weights.map(|row| &row[..columns / 4]);
    let mut sums = [[i32x4_splat(0); 4]; 2];
    for block in 0..columns / BLOCK_COLUMNS {
        for half in [0, BYTES] {
            let mut packed = weights.map(|row| bytes(simd, &row[block * BLOCK_BYTES + half..]));
            for plane in 0..4 {
                let at = block * BLOCK_COLUMNS + plane * PLANE_COLUMNS + half;
                let codes = packed.map(|row| v128_and(row, low_bits));
                packed = packed.map(|row| u16x8_shr(row, 2));
                for (column, x) in x.iter().enumerate() {
                    let x: v128 = i8x16::from_slice(simd, &x[at..][..BYTES]).into();
                    for (sums, codes) in sums.iter_mut().zip(codes) {
                        sums[column] = i32x4_relaxed_dot_i8x16_i7x16_add(x, codes, sums[column]);
                    }
                }
            }
        }
    }
    sums.map(|sums| sums.map(|sum| add_lanes(simd, sum)))
}

/// 16 activations of each plane of a block, from byte `half` on.
#[inline(always)]
fn activations(simd: WasmSimd128, block: &[i8], half: usize) -> [v128; 4] {
    std::array::from_fn(|plane| {
        i8x16::from_slice(simd, &block[plane * PLANE_COLUMNS + half..][..BYTES]).into()
    })
}

#[inline(always)]
fn bytes(simd: WasmSimd128, bytes: &[u8]) -> v128 {
    u8x16::from_slice(simd, &bytes[..BYTES]).into()
}

#[inline(always)]
fn add_lanes(simd: WasmSimd128, sum: v128) -> i32 {
    let lanes: [i32; 4] = i32x4::simd_from(simd, sum).into();
    lanes.iter().sum()
}
