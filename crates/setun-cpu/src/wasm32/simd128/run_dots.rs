//! WebAssembly SIMD version of [`run_dots`](crate::ternary_dot::TernaryDot::run_dots).
//!
//! One loop for all lengths of runs: a block of a row gives a sum of each plane, and a run adds
//! those of one, two or four. Products are made in 16 bits, where codes are masked in place: those
//! of the third plane, at most 32, are `32 × 128 = 4096`, and a lane takes four of them from a block:
//! `16,384`. Those of the fourth would overflow, and are shifted down before.

use std::arch::wasm32::{
    i16x8_add, i16x8_extend_high_i8x16, i16x8_extend_low_i8x16, i16x8_mul, i16x8_shr, i16x8_splat,
    i32x4_add, i32x4_extadd_pairwise_i16x8, i32x4_shuffle, i32x4_splat, i64x2_shuffle,
    u16x8_extend_high_u8x16, u16x8_extend_low_u8x16, u16x8_shr, v128, v128_and,
};

use fearless_simd::{i8x16, i32x4, prelude::*, u8x16, wasm32::WasmSimd128};
use setun_ops::ternary::{BLOCK_COLUMNS, PLANE_COLUMNS};

use super::ternary_dot::{BYTES, LANES};
use crate::{
    ternary_dot::{
        ActivationBlock, CodeBlock, CodeDots, CodeRows, TILE_OUTPUTS, activation_blocks,
        code_blocks,
    },
    wasm32::touch_blocks,
};

/// Planes of a block.
const PLANES: usize = BLOCK_COLUMNS / PLANE_COLUMNS;

/// Sums of the planes of a block of four rows, `[row][plane]`, four parts of each.
type PlaneSums = [[v128; PLANES]; TILE_OUTPUTS];

/// Widened activations of a block, `[plane][eight of it]`.
type Eights = [[v128; PLANE_COLUMNS / LANES]; PLANES];

/// Sums of four rows, of each run of columns.
#[inline(never)]
pub(super) fn run_dots(
    simd: WasmSimd128,
    weights: CodeRows<'_>,
    ahead: CodeRows<'_>,
    x: &[i8],
    run: usize,
    dots: &mut [CodeDots],
) {
    blocks_of_runs(simd, weights, ahead, x, run, dots, widened, plane_sums);
}

/// Every block: `of_row` makes the sums of a row's planes of what `of_x` makes of the activations.
#[inline(always)]
pub(in crate::wasm32) fn blocks_of_runs<X>(
    simd: WasmSimd128,
    weights: CodeRows<'_>,
    ahead: CodeRows<'_>,
    x: &[i8],
    run: usize,
    dots: &mut [CodeDots],
    of_x: impl Fn(WasmSimd128, &ActivationBlock) -> X,
    of_row: impl Fn(WasmSimd128, &CodeBlock, &X) -> [v128; PLANES],
) {
    let blocks = x.len() / BLOCK_COLUMNS;
    let (weights, [x]) = (code_blocks(weights, blocks), activation_blocks([x], blocks));
    let dots = dots.chunks_exact_mut(BLOCK_COLUMNS / run);
    for (block, (x, dots)) in x.iter().zip(dots).enumerate() {
        touch_blocks(ahead, block);
        let x = of_x(simd, x);
        let mut sums = [[i32x4_splat(0); PLANES]; TILE_OUTPUTS];
        for (sums, row) in sums.iter_mut().zip(weights) {
            *sums = of_row(simd, &row[block], &x);
        }
        store_runs(simd, &sums, run / PLANE_COLUMNS, dots);
    }
}

/// Adds the sums of so many planes for each run, and the parts of each row.
#[inline(always)]
fn store_runs(simd: WasmSimd128, sums: &PlaneSums, planes: usize, dots: &mut [CodeDots]) {
    for (run, dots) in dots.iter_mut().enumerate() {
        let first = run * planes;
        let mut rows = sums.map(|planes| planes[first]);
        for plane in first + 1..first + planes {
            for (row, sums) in rows.iter_mut().zip(sums) {
                *row = i32x4_add(*row, sums[plane]);
            }
        }
        *dots = i32x4::simd_from(simd, fold(rows)).into();
    }
}

/// The sum of the lanes of each of four vectors, by a transposing fold.
#[inline(always)]
fn fold([a, b, c, d]: [v128; 4]) -> v128 {
    let [ab, cd] = [(a, b), (c, d)].map(|(a, b)| {
        i32x4_add(i32x4_shuffle::<0, 4, 1, 5>(a, b), i32x4_shuffle::<2, 6, 3, 7>(a, b))
    });
    i32x4_add(i64x2_shuffle::<0, 2>(ab, cd), i64x2_shuffle::<1, 3>(ab, cd))
}

#[inline(always)]
fn widened(simd: WasmSimd128, x: &ActivationBlock) -> Eights {
    let mut eights = [[i16x8_splat(0); PLANE_COLUMNS / LANES]; PLANES];
    for (eights, x) in eights.as_flattened_mut().as_chunks_mut().0.iter_mut().zip(x.as_chunks().0) {
        let x: v128 = i8x16::simd_from(simd, *x).into();
        *eights = [i16x8_extend_low_i8x16(x), i16x8_extend_high_i8x16(x)];
    }
    eights
}

/// The sums of the planes of a block of a row.
#[inline(always)]
fn plane_sums(simd: WasmSimd128, row: &CodeBlock, x: &Eights) -> [v128; PLANES] {
    let masks = [0x03, 0x0c, 0x30].map(|mask| i16x8_splat(mask));
    let mut sums = [i16x8_splat(0); PLANES];
    for half in 0..PLANE_COLUMNS / BYTES {
        let packed: v128 = u8x16::from_slice(simd, &row[half * BYTES..][..BYTES]).into();
        let eights = [u16x8_extend_low_u8x16(packed), u16x8_extend_high_u8x16(packed)];
        for (at, packed) in eights.into_iter().enumerate() {
            let at = 2 * half + at;
            for (plane, mask) in masks.into_iter().enumerate() {
                let products = i16x8_mul(v128_and(packed, mask), x[plane][at]);
                sums[plane] = i16x8_add(sums[plane], products);
            }
            sums[3] = i16x8_add(sums[3], i16x8_mul(u16x8_shr(packed, 6), x[3][at]));
        }
    }
    let [first, second, third, fourth] = sums;
    [first, i16x8_shr(second, 2), i16x8_shr(third, 4), fourth]
        .map(|sum| i32x4_extadd_pairwise_i16x8(sum))
}
