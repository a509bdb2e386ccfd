//! Relaxed-SIMD version of [`setun_ops::ternary_dot()`].
//!
//! A relaxed dot product multiplies 16 activations with 16 values that must lie in 0..=127, and
//! engines may saturate the 16-bit sums of pairs. Masked in place, codes are at most 2 and 8, so a
//! pair is at most `2 × 8 × 128 = 2048`: never saturated, and the same on every engine. One shift
//! brings the upper two planes to where the lower two lie, of which the second is 4 times too
//! large, and its sum is divided exactly at the end.
//!
//! Where a product of fours is one instruction, a lane stays in 32 bits up to
//! `2^31 / (16 × 8 × 128)` blocks, 16 million columns, far beyond those of a matrix. Elsewhere pairs are added in 16 bits and
//! widened every [`BLOCKS`] blocks.

use std::arch::wasm32::{
    i16x8_add, i16x8_relaxed_dot_i8x16_i7x16, i16x8_shr, i16x8_splat, i32x4_add,
    i32x4_extadd_pairwise_i16x8, i32x4_relaxed_dot_i8x16_i7x16_add, i32x4_shr, i32x4_splat,
    u8x16_splat, u16x8_shr, v128, v128_and,
};

use fearless_simd::{i8x16, prelude::*, u8x16, wasm32::WasmSimd128};
use setun_ops::ternary::{BLOCK_COLUMNS, PLANE_COLUMNS};

use super::{Products, Relaxed, run_dots::run_dots};
use crate::{
    ternary_dot::{
        ActivationBlock, CodeBlock, CodeDots, CodeRows, TernaryDot, WideDots, WideRows,
        activation_blocks, code_blocks,
    },
    wasm32::{simd128::ternary_dot::add_lanes, touch_blocks},
};

/// Bytes of a vector.
const BYTES: usize = 16;

/// Blocks whose 16-bit sums of pairs cannot overflow: `3 × 4 × 2048 = 24,576`.
const BLOCKS: usize = 3;

impl TernaryDot for Relaxed {
    type Lanes = WasmSimd128;
    type Columns = Self;

    fn lanes(self) -> WasmSimd128 {
        self.simd
    }

    fn columns(self) -> Self {
        self
    }

    fn code_dots(self, weights: CodeRows<'_>, ahead: CodeRows<'_>, x: &[i8]) -> CodeDots {
        match self.products {
            Products::Fours => four_rows(self.simd, weights, ahead, x),
            Products::Pairs => four_rows_by_pairs(self.simd, weights, ahead, x),
        }
    }

    fn run_dots(
        self,
        weights: CodeRows<'_>,
        ahead: CodeRows<'_>,
        x: &[i8],
        run: usize,
        dots: &mut [CodeDots],
    ) {
        run_dots(self, weights, ahead, x, run, dots);
    }

    fn code_dots_wide(
        self,
        [a, b, c, d]: CodeRows<'_>,
        _ahead: CodeRows<'_>,
        x: WideRows<'_>,
    ) -> WideDots {
        // Two rows at a time: engines have sixteen registers.
        let upper = two_rows_wide(self.simd, [a, b], x);
        let lower = two_rows_wide(self.simd, [c, d], x);
        std::array::from_fn(|row| [upper[0][row], upper[1][row], lower[0][row], lower[1][row]])
    }
}

#[inline(always)]
fn four_rows(simd: WasmSimd128, weights: [&[u8]; 4], ahead: [&[u8]; 4], x: &[i8]) -> [i32; 4] {
    let blocks = x.len() / BLOCK_COLUMNS;
    let (weights, [x]) = (code_blocks(weights, blocks), activation_blocks([x], blocks));
    let mut sums = [[i32x4_splat(0); 2]; 4];
    for (block, x) in x.iter().enumerate() {
        touch_blocks(ahead, block);
        let weights = weights.map(|row| &row[block]);
        let add = |x, codes, sum| i32x4_relaxed_dot_i8x16_i7x16_add(x, codes, sum);
        add_half::<0>(simd, weights, x, &mut sums, add);
        add_half::<BYTES>(simd, weights, x, &mut sums, add);
    }
    sums.map(|[by_1, by_4]| add_lanes(simd, i32x4_add(by_1, i32x4_shr(by_4, 2))))
}

#[inline(always)]
fn four_rows_by_pairs(
    simd: WasmSimd128,
    weights: [&[u8]; 4],
    ahead: [&[u8]; 4],
    x: &[i8],
) -> [i32; 4] {
    let blocks = x.len() / BLOCK_COLUMNS;
    let (weights, [x]) = (code_blocks(weights, blocks), activation_blocks([x], blocks));
    let mut sums = [i32x4_splat(0); 4];
    for run in (0..blocks).step_by(BLOCKS) {
        let mut run_sums = [[i16x8_splat(0); 2]; 4];
        for block in run..blocks.min(run + BLOCKS) {
            touch_blocks(ahead, block);
            let weights = weights.map(|row| &row[block]);
            let add = |x, codes, sum| i16x8_add(sum, i16x8_relaxed_dot_i8x16_i7x16(x, codes));
            add_half::<0>(simd, weights, &x[block], &mut run_sums, add);
            add_half::<BYTES>(simd, weights, &x[block], &mut run_sums, add);
        }
        for (sum, [by_1, by_4]) in sums.iter_mut().zip(run_sums) {
            let run_sum = i16x8_add(by_1, i16x8_shr(by_4, 2));
            *sum = i32x4_add(*sum, i32x4_extadd_pairwise_i16x8(run_sum));
        }
    }
    sums.map(|sum| add_lanes(simd, sum))
}

/// Adds the products of half a block, `[row][scale of the sum: 1, 4]`, by `add(x, codes, sum)`.
#[inline(always)]
fn add_half<const AT: usize>(
    simd: WasmSimd128,
    weights: [&CodeBlock; 4],
    x: &ActivationBlock,
    sums: &mut [[v128; 2]; 4],
    add: impl Fn(v128, v128, v128) -> v128,
) {
    let masks = [u8x16_splat(0x03), u8x16_splat(0x0c)];
    let x: [v128; 4] = std::array::from_fn(|plane| activations::<AT>(simd, x, plane));
    for (sums, row) in sums.iter_mut().zip(weights) {
        let lower = codes::<AT>(simd, row);
        let upper = u16x8_shr(lower, 4);
        for (packed, x) in [(lower, [x[0], x[1]]), (upper, [x[2], x[3]])] {
            for ((sum, mask), x) in sums.iter_mut().zip(masks).zip(x) {
                *sum = add(x, v128_and(packed, mask), *sum);
            }
        }
    }
}

#[inline(always)]
fn two_rows_wide(simd: WasmSimd128, weights: [&[u8]; 2], x: [&[i8]; 4]) -> [[i32; 4]; 2] {
    let blocks = x[0].len() / BLOCK_COLUMNS;
    let (weights, x) = (code_blocks(weights, blocks), activation_blocks(x, blocks));
    let mut sums = [[i32x4_splat(0); 4]; 2];
    for block in 0..blocks {
        let (weights, x) = (weights.map(|row| &row[block]), x.map(|x| &x[block]));
        add_half_wide::<0>(simd, weights, x, &mut sums);
        add_half_wide::<BYTES>(simd, weights, x, &mut sums);
    }
    sums.map(|sums| sums.map(|sum| add_lanes(simd, sum)))
}

/// Adds the products of half a block with four rows of activations.
#[inline(always)]
fn add_half_wide<const AT: usize>(
    simd: WasmSimd128,
    weights: [&CodeBlock; 2],
    x: [&ActivationBlock; 4],
    sums: &mut [[v128; 4]; 2],
) {
    let low_bits = u8x16_splat(0b11);
    let mut packed = weights.map(|row| codes::<AT>(simd, row));
    for plane in 0..BLOCK_COLUMNS / PLANE_COLUMNS {
        let codes = packed.map(|row| v128_and(row, low_bits));
        packed = packed.map(|row| u16x8_shr(row, 2));
        for (column, x) in x.iter().enumerate() {
            let x = activations::<AT>(simd, x, plane);
            for (sums, codes) in sums.iter_mut().zip(codes) {
                sums[column] = i32x4_relaxed_dot_i8x16_i7x16_add(x, codes, sums[column]);
            }
        }
    }
}

/// 16 activations of a plane of a block, from byte `AT` of the plane on.
#[inline(always)]
fn activations<const AT: usize>(simd: WasmSimd128, block: &ActivationBlock, plane: usize) -> v128 {
    i8x16::from_slice(simd, &block[plane * PLANE_COLUMNS + AT..][..BYTES]).into()
}

#[inline(always)]
fn codes<const AT: usize>(simd: WasmSimd128, block: &CodeBlock) -> v128 {
    u8x16::from_slice(simd, &block[AT..][..BYTES]).into()
}
