//! WebAssembly SIMD version of [`setun_ops::column_sums`].
//!
//! Half a block of each column is loaded at a time: 16 bytes hold 64 codes, 16 of each plane, of
//! neighbouring outputs. As in `ternary_dot`, products are made in 16 bits, modulo 2^16, and planes
//! need no masks: as a code is `cₖ = Pₖ − 4Pₖ₊₁`, where `Pₖ` is its byte shifted down to it, sums
//! over columns are too. Those of eight columns are at most `8 × 2 × 128 = 2048`.

use std::arch::wasm32::{
    i16x8_add, i16x8_mul, i16x8_shl, i16x8_splat, i16x8_sub, i32x4_add, i32x4_extend_high_i16x8,
    i32x4_extend_low_i16x8, u16x8_extend_high_u8x16, u16x8_extend_low_u8x16, u16x8_shr, v128,
};

use fearless_simd::{i32x4, prelude::*, u8x16, wasm32::WasmSimd128};
use setun_ops::ternary::{BLOCK_BYTES, BLOCK_COLUMNS, PLANE_COLUMNS};

use super::Simd128;
use crate::{
    column_sums::{ColumnSums, Columns, Inputs, TILE_COLUMNS},
    wasm32::{touch, touch_blocks},
};

/// Bytes of a vector.
const BYTES: usize = 16;

/// Planes of a block.
const PLANES: usize = BLOCK_COLUMNS / PLANE_COLUMNS;

/// Outputs of a vector of sums.
const LANES: usize = 4;

impl ColumnSums for Simd128 {
    fn add_columns(self, columns: Columns<'_>, ahead: Columns<'_>, x: Inputs, sums: &mut [i32]) {
        let blocks = columns[0].len() / BLOCK_BYTES;
        for (block, sums) in sums.chunks_exact_mut(BLOCK_COLUMNS).take(blocks).enumerate() {
            touch_blocks(ahead, block);
            for half in [0, BYTES] {
                let packed = columns.map(|column| &column[block * BLOCK_BYTES + half..][..BYTES]);
                add_half(self.0, packed, x, half, sums);
            }
        }
    }

    fn place(self, output: usize) -> (usize, u32) {
        (output, 0)
    }

    fn prefetch(self, column: &[u8]) {
        touch(column);
    }
}

/// Adds half a block of eight columns to the sums of a block, where its planes begin at `at`.
#[inline(always)]
fn add_half(
    simd: WasmSimd128,
    packed: [&[u8]; TILE_COLUMNS],
    x: [i8; TILE_COLUMNS],
    at: usize,
    sums: &mut [i32],
) {
    // [plane][half of the outputs]
    let mut products = [[i16x8_splat(0); 2]; PLANES];
    for (packed, x) in packed.into_iter().zip(x) {
        let (x, packed): (_, v128) =
            (i16x8_splat(x.into()), u8x16::from_slice(simd, packed).into());
        let mut packed = [u16x8_extend_low_u8x16(packed), u16x8_extend_high_u8x16(packed)];
        for products in &mut products {
            for (product, packed) in products.iter_mut().zip(&mut packed) {
                *product = i16x8_add(*product, i16x8_mul(*packed, x));
                *packed = u16x8_shr(*packed, 2);
            }
        }
    }
    for plane in 0..PLANES {
        let next = products.get(plane + 1).copied().unwrap_or([i16x8_splat(0); 2]);
        let [low, high] =
            [0, 1].map(|half| i16x8_sub(products[plane][half], i16x8_shl(next[half], 2)));
        add_outputs(simd, [low, high], &mut sums[plane * PLANE_COLUMNS + at..][..BYTES]);
    }
}

/// Adds to the sums of 16 outputs.
#[inline(always)]
fn add_outputs(simd: WasmSimd128, [low, high]: [v128; 2], sums: &mut [i32]) {
    let products = [
        i32x4_extend_low_i16x8(low),
        i32x4_extend_high_i16x8(low),
        i32x4_extend_low_i16x8(high),
        i32x4_extend_high_i16x8(high),
    ];
    let (vectors, _) = sums.as_chunks_mut::<LANES>();
    for (sums, products) in vectors.iter_mut().zip(products) {
        let sum = i32x4_add(i32x4::from_slice(simd, sums).into(), products);
        i32x4::simd_from(simd, sum).store_slice(sums);
    }
}
