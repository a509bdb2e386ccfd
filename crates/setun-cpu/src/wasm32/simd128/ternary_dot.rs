//! WebAssembly SIMD version of [`setun_ops::ternary_dot()`].
//!
//! Products are made in 16 bits, modulo 2^16, which leaves a sum right that fits at the end. Hence
//! planes need no masks: a byte `P₀ = c₀ + 4c₁ + 16c₂ + 64c₃`, shifted down by two bits again and
//! again, gives `P₁`, `P₂` and `P₃`, and as `cₖ = Pₖ − 4Pₖ₊₁`,
//!
//! ```text
//! c₀x₀ + c₁x₁ + c₂x₂ + c₃x₃  =  P₀x₀ + P₁(x₁ − 4x₀) + P₂(x₂ − 4x₁) + P₃(x₃ − 4x₂)
//! ```
//!
//! The left side is at most `4 × 2 × 128 = 1024`, and a lane takes four of it from a block, so the
//! sums are widened every [`BLOCKS`] blocks.

use std::arch::wasm32::{
    i16x8_add, i16x8_extend_low_i8x16, i16x8_mul, i16x8_shl, i16x8_splat, i16x8_sub, i32x4_add,
    i32x4_extadd_pairwise_i16x8, i32x4_splat, i64x2_splat, u16x8_extend_high_u8x16,
    u16x8_extend_low_u8x16, u16x8_shr, v128,
};

use fearless_simd::{i32x4, prelude::*, u8x16, wasm32::WasmSimd128};
use setun_ops::ternary::{BLOCK_COLUMNS, PLANE_COLUMNS};

use super::{Simd128, run_dots::run_dots};
use crate::{
    ternary_dot::{
        CodeDots, CodeRows, TernaryDot, WideDots, WideRows, activation_blocks, code_blocks,
    },
    wasm32::touch_blocks,
};

/// Blocks whose 16-bit sums cannot overflow: `7 × 4 × 1024 = 28,672`.
const BLOCKS: usize = 7;

/// Bytes of a vector.
pub(super) const BYTES: usize = 16;

/// Lanes of 16 bits of a vector.
const LANES: usize = 8;

impl TernaryDot for Simd128 {
    type Lanes = WasmSimd128;
    type Columns = Self;

    fn lanes(self) -> WasmSimd128 {
        self.0
    }

    fn columns(self) -> Self {
        self
    }

    fn code_dots(self, weights: CodeRows<'_>, ahead: CodeRows<'_>, x: &[i8]) -> CodeDots {
        let [sums] = tile(self.0, weights, ahead, [x]);
        sums
    }

    fn run_dots(
        self,
        weights: CodeRows<'_>,
        ahead: CodeRows<'_>,
        x: &[i8],
        run: usize,
        dots: &mut [CodeDots],
    ) {
        run_dots(self.0, weights, ahead, x, run, dots);
    }

    fn code_dots_wide(
        self,
        [a, b, c, d]: CodeRows<'_>,
        _ahead: CodeRows<'_>,
        x: WideRows<'_>,
    ) -> WideDots {
        // Two rows at a time: engines have sixteen registers.
        let upper = tile(self.0, [a, b], [], x);
        let lower = tile(self.0, [c, d], [], x);
        std::array::from_fn(|row| {
            let ([a, b], [c, d]) = (upper[row], lower[row]);
            [a, b, c, d]
        })
    }
}

#[inline(always)]
fn tile<const OUTPUTS: usize, const ROWS: usize, const AHEAD: usize>(
    simd: WasmSimd128,
    weights: [&[u8]; OUTPUTS],
    ahead: [&[u8]; AHEAD],
    x: [&[i8]; ROWS],
) -> [[i32; OUTPUTS]; ROWS] {
    let blocks = x[0].len() / BLOCK_COLUMNS;
    let (weights, x) = (code_blocks(weights, blocks), activation_blocks(x, blocks));
    let mut sums = [[i32x4_splat(0); OUTPUTS]; ROWS];
    for run in (0..blocks).step_by(BLOCKS) {
        let mut run_sums = [[i16x8_splat(0); OUTPUTS]; ROWS];
        // Half a block at a time: its factors stay in registers.
        for half in 2 * run..2 * blocks.min(run + BLOCKS) {
            let (block, at) = (half / 2, half % 2 * BYTES);
            if at == 0 {
                touch_blocks(ahead, block);
            }
            let (mut low, mut high) = ([i16x8_splat(0); OUTPUTS], [i16x8_splat(0); OUTPUTS]);
            for ((low, high), row) in low.iter_mut().zip(&mut high).zip(weights) {
                let packed: v128 = u8x16::from_slice(simd, &row[block][at..][..BYTES]).into();
                *low = u16x8_extend_low_u8x16(packed);
                *high = u16x8_extend_high_u8x16(packed);
            }
            let x = x.map(|x| &x[block][at..]);
            add_planes(low, x, &mut run_sums);
            add_planes(high, x.map(|x| &x[LANES..]), &mut run_sums);
        }
        for (sums, run_sums) in sums.iter_mut().zip(run_sums) {
            for (sum, run_sum) in sums.iter_mut().zip(run_sums) {
                *sum = i32x4_add(*sum, i32x4_extadd_pairwise_i16x8(run_sum));
            }
        }
    }
    sums.map(|sums| sums.map(|sum| add_lanes(simd, sum)))
}

/// Adds the products of eight packed bytes with the activations that begin their planes.
#[inline(always)]
fn add_planes<const OUTPUTS: usize, const ROWS: usize>(
    mut packed: [v128; OUTPUTS],
    x: [&[i8]; ROWS],
    sums: &mut [[v128; OUTPUTS]; ROWS],
) {
    let mut before = [i16x8_splat(0); ROWS];
    for plane in 0..BLOCK_COLUMNS / PLANE_COLUMNS {
        for ((sums, x), before) in sums.iter_mut().zip(x).zip(&mut before) {
            let x = eight(&x[plane * PLANE_COLUMNS..]);
            let factor = i16x8_sub(x, i16x8_shl(*before, 2));
            *before = x;
            for (sum, packed) in sums.iter_mut().zip(packed) {
                *sum = i16x8_add(*sum, i16x8_mul(packed, factor));
            }
        }
        for packed in &mut packed {
            *packed = u16x8_shr(*packed, 2);
        }
    }
}

/// The first eight activations in 16 bits.
#[inline(always)]
fn eight(x: &[i8]) -> v128 {
    let x: [u8; LANES] = std::array::from_fn(|lane| x[lane].cast_unsigned());
    i16x8_extend_low_i8x16(i64x2_splat(i64::from_le_bytes(x)))
}

#[inline(always)]
pub(in crate::wasm32) fn add_lanes(simd: WasmSimd128, sum: v128) -> i32 {
    let lanes: [i32; 4] = i32x4::simd_from(simd, sum).into();
    lanes.iter().sum()
}
