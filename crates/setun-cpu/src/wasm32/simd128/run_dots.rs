//! WebAssembly SIMD version of [`run_dots`](crate::ternary_dot::TernaryDot::run_dots).
//!
//! One loop over planes serves all lengths of runs, as it is smaller than a loop for each: codes of
//! a block of four rows wait in eight vectors, which a plane shifts down. Products are made in 16 bits:
//! each is at most `2 × 128 = 256`, and a lane takes 16 of them from a run, `4096`.

use std::arch::wasm32::{
    i16x8_add, i16x8_extend_high_i8x16, i16x8_extend_low_i8x16, i16x8_mul, i32x4_add,
    i32x4_extadd_pairwise_i16x8, i32x4_shuffle, i32x4_splat, i64x2_shuffle, u8x16_splat, u16x8_shr,
    v128, v128_and,
};

use fearless_simd::{i8x16, i32x4, prelude::*, u8x16, wasm32::WasmSimd128};
use setun_ops::ternary::{BLOCK_BYTES, BLOCK_COLUMNS, PLANE_COLUMNS};

use crate::{
    ternary_dot::{CodeDots, CodeRows, TILE_OUTPUTS, code_blocks},
    wasm32::touch_blocks,
};

/// Bytes of a vector.
const BYTES: usize = 16;

/// Vectors of a plane: both halves.
const HALVES: usize = PLANE_COLUMNS / BYTES;

/// Planes of a block.
const PLANES: usize = BLOCK_COLUMNS / PLANE_COLUMNS;

/// Activations of a plane.
pub(in crate::wasm32) type PlaneHalves = [v128; HALVES];

/// Codes of a plane of four rows, `[half][row]`.
pub(in crate::wasm32) type PlaneCodes = [[v128; TILE_OUTPUTS]; HALVES];

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
    plane_by_plane(simd, weights, ahead, x, run, dots, add_plane, widen);
}

/// `add` adds the products of a plane to the sums of four rows, of which `widen` makes lanes of 32 bits.
#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "those of `run_dots`, and two functions")]
pub(in crate::wasm32) fn plane_by_plane(
    simd: WasmSimd128,
    weights: CodeRows<'_>,
    ahead: CodeRows<'_>,
    x: &[i8],
    run: usize,
    dots: &mut [CodeDots],
    add: impl Fn(PlaneHalves, &PlaneCodes, &mut [v128; TILE_OUTPUTS]),
    widen: impl Fn(v128) -> v128,
) {
    let weights = code_blocks(weights, x.len() / BLOCK_COLUMNS);
    let (mut dots, mut left) = (dots.iter_mut(), run);
    let mut packed = [[i32x4_splat(0); TILE_OUTPUTS]; HALVES];
    let mut sums = [i32x4_splat(0); TILE_OUTPUTS];
    for (plane, x) in x.as_chunks::<PLANE_COLUMNS>().0.iter().enumerate() {
        if plane % PLANES == 0 {
            let block = plane / PLANES;
            touch_blocks(ahead, block);
            packed = [0, 1].map(|half| weights.map(|row| half_of(simd, &row[block], half)));
        }
        let codes = packed.map(|half| half.map(|packed| v128_and(packed, u8x16_splat(0b11))));
        packed = packed.map(|half| half.map(|packed| u16x8_shr(packed, 2)));
        let x = [0, 1].map(|half| i8x16::from_slice(simd, &x[half * BYTES..][..BYTES]).into());
        add(x, &codes, &mut sums);
        left -= PLANE_COLUMNS;
        if left == 0 {
            left = run;
            let Some(dots) = dots.next() else { return };
            *dots = i32x4::simd_from(simd, fold(sums.map(&widen))).into();
            sums = [i32x4_splat(0); TILE_OUTPUTS];
        }
    }
}

/// The sum of the lanes of each of four vectors, by a transposing fold.
#[inline(always)]
fn fold([a, b, c, d]: [v128; TILE_OUTPUTS]) -> v128 {
    let [ab, cd] = [(a, b), (c, d)].map(|(a, b)| {
        i32x4_add(i32x4_shuffle::<0, 4, 1, 5>(a, b), i32x4_shuffle::<2, 6, 3, 7>(a, b))
    });
    i32x4_add(i64x2_shuffle::<0, 2>(ab, cd), i64x2_shuffle::<1, 3>(ab, cd))
}

/// Adds in lanes of 16 bits.
#[inline(always)]
fn add_plane(x: PlaneHalves, codes: &PlaneCodes, sums: &mut [v128; TILE_OUTPUTS]) {
    let halves = |bytes| [i16x8_extend_low_i8x16(bytes), i16x8_extend_high_i8x16(bytes)];
    for (x, codes) in x.map(halves).into_iter().zip(codes) {
        for (sum, &codes) in sums.iter_mut().zip(codes) {
            for (x, codes) in x.into_iter().zip(halves(codes)) {
                *sum = i16x8_add(*sum, i16x8_mul(x, codes));
            }
        }
    }
}

#[inline(always)]
fn widen(sum: v128) -> v128 {
    i32x4_extadd_pairwise_i16x8(sum)
}

#[inline(always)]
fn half_of(simd: WasmSimd128, block: &[u8; BLOCK_BYTES], half: usize) -> v128 {
    u8x16::from_slice(simd, &block[half * BYTES..][..BYTES]).into()
}
