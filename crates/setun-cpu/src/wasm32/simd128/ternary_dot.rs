//! WebAssembly SIMD twin of [`setun_ops::ternary_dot()`].
//!
//! Half a block is loaded at a time: 16 bytes hold 64 codes, 16 of each plane. Shifts of 8-bit
//! lanes are emulated on x86, so lanes of 16 bits are shifted and masked. A product is at most
//! `2 × 128 = 256`, and a 16-bit lane takes 16 of them from a block, so the sums are widened
//! every [`BLOCKS`] blocks.

use std::arch::wasm32::{
    i16x8_add, i16x8_extmul_high_i8x16, i16x8_extmul_low_i8x16, i16x8_splat, i32x4_add,
    i32x4_extadd_pairwise_i16x8, i32x4_splat, u8x16_splat, u16x8_shr, v128, v128_and,
};

use fearless_simd::{i8x16, i32x4, prelude::*, u8x16, wasm32::WasmSimd128};
use setun_ops::ternary::{BLOCK_BYTES, BLOCK_COLUMNS, PLANE_COLUMNS};

use super::Simd128;
use crate::ternary_dot::{TILE_OUTPUTS, TILE_ROWS, TernaryDot};

/// Blocks whose 16-bit sums cannot overflow: `7 × 16 × 256 = 28,672`.
const BLOCKS: usize = 7;

/// Bytes of a vector.
pub(super) const BYTES: usize = 16;

impl TernaryDot for Simd128 {
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
        let [sums] = tile(self.0, weights, [x]);
        sums
    }

    fn code_dots_wide(
        self,
        [a, b, c, d]: [&[u8]; TILE_OUTPUTS],
        x: [&[i8]; TILE_ROWS],
    ) -> [[i32; TILE_OUTPUTS]; TILE_ROWS] {
        // Two rows at a time: engines have sixteen registers.
        let upper = tile(self.0, [a, b], x);
        let lower = tile(self.0, [c, d], x);
        std::array::from_fn(|row| {
            let ([a, b], [c, d]) = (upper[row], lower[row]);
            [a, b, c, d]
        })
    }
}

#[inline(always)]
fn tile<const OUTPUTS: usize, const ROWS: usize>(
    simd: WasmSimd128,
    weights: [&[u8]; OUTPUTS],
    x: [&[i8]; ROWS],
) -> [[i32; OUTPUTS]; ROWS] {
    let columns = x[0].len();
    let x = x.map(|x| &x[..columns]);
    let weights = weights.map(|row| &row[..columns / 4]);
    let blocks = columns / BLOCK_COLUMNS;
    let mut sums = [[i32x4_splat(0); OUTPUTS]; ROWS];
    for run in (0..blocks).step_by(BLOCKS) {
        let mut run_sums = [[i16x8_splat(0); OUTPUTS]; ROWS];
        for block in run..blocks.min(run + BLOCKS) {
            for half in [0, BYTES] {
                let packed: [v128; OUTPUTS] = weights.map(|row| {
                    u8x16::from_slice(simd, &row[block * BLOCK_BYTES + half..][..BYTES]).into()
                });
                let at = block * BLOCK_COLUMNS + half;
                plane::<OUTPUTS, ROWS, 0>(simd, packed, x, at, &mut run_sums);
                plane::<OUTPUTS, ROWS, 1>(simd, packed, x, at, &mut run_sums);
                plane::<OUTPUTS, ROWS, 2>(simd, packed, x, at, &mut run_sums);
                plane::<OUTPUTS, ROWS, 3>(simd, packed, x, at, &mut run_sums);
            }
        }
        for (sums, run_sums) in sums.iter_mut().zip(run_sums) {
            for (sum, run_sum) in sums.iter_mut().zip(run_sums) {
                *sum = i32x4_add(*sum, i32x4_extadd_pairwise_i16x8(run_sum));
            }
        }
    }
    sums.map(|sums| sums.map(|sum| add_lanes(simd, sum)))
}

/// Adds the products of 16 codes of one plane with the activations from column `at` on.
#[inline(always)]
fn plane<const OUTPUTS: usize, const ROWS: usize, const PLANE: usize>(
    simd: WasmSimd128,
    packed: [v128; OUTPUTS],
    x: [&[i8]; ROWS],
    at: usize,
    sums: &mut [[v128; OUTPUTS]; ROWS],
) {
    let low_bits = u8x16_splat(0b11);
    let codes = packed.map(|packed| {
        let shifted = if PLANE == 0 { packed } else { u16x8_shr(packed, 2 * PLANE as u32) };
        v128_and(shifted, low_bits)
    });
    for (sums, x) in sums.iter_mut().zip(x) {
        let x: v128 = i8x16::from_slice(simd, &x[at + PLANE * PLANE_COLUMNS..][..BYTES]).into();
        for (sum, codes) in sums.iter_mut().zip(codes) {
            *sum = i16x8_add(*sum, i16x8_extmul_low_i8x16(x, codes));
            *sum = i16x8_add(*sum, i16x8_extmul_high_i8x16(x, codes));
        }
    }
}

#[inline(always)]
pub(super) fn add_lanes(simd: WasmSimd128, sum: v128) -> i32 {
    let lanes: [i32; 4] = i32x4::simd_from(simd, sum).into();
    lanes.iter().sum()
}
