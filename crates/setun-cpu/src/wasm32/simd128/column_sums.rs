//! WebAssembly SIMD twin of [`setun_ops::column_sums`].
//!
//! Half a block of each column is loaded at a time: 16 bytes hold 64 codes, 16 of each plane, of
//! neighbouring outputs. Products of eight columns come together in 16 bits: at most
//! `8 × 2 × 128 = 2048`.

use std::arch::wasm32::{
    i8x16_splat, i16x8_add, i16x8_extmul_high_i8x16, i16x8_extmul_low_i8x16, i16x8_splat,
    i32x4_add, i32x4_extend_high_i16x8, i32x4_extend_low_i16x8, u8x16_splat, u16x8_shr, v128,
    v128_and,
};

use fearless_simd::{i32x4, prelude::*, u8x16, wasm32::WasmSimd128};
use setun_ops::ternary::{BLOCK_BYTES, BLOCK_COLUMNS, PLANE_COLUMNS};

use super::Simd128;
use crate::{
    column_sums::{ColumnSums, TILE_COLUMNS},
    wasm32::{touch, touch_blocks},
};

/// Bytes of a vector.
const BYTES: usize = 16;

/// Outputs of a vector of sums.
const LANES: usize = 4;

impl ColumnSums for Simd128 {
    fn add_columns(
        self,
        columns: [&[u8]; TILE_COLUMNS],
        ahead: [&[u8]; TILE_COLUMNS],
        activations: [i8; TILE_COLUMNS],
        sums: &mut [i32],
    ) {
        let x = activations.map(|x| i8x16_splat(x));
        let blocks = columns[0].len() / BLOCK_BYTES;
        for (block, sums) in sums.chunks_exact_mut(BLOCK_COLUMNS).take(blocks).enumerate() {
            touch_blocks(ahead, block);
            for half in [0, BYTES] {
                let mut packed = columns.map(|column| -> v128 {
                    u8x16::from_slice(self.0, &column[block * BLOCK_BYTES + half..][..BYTES]).into()
                });
                for plane in sums.chunks_exact_mut(PLANE_COLUMNS) {
                    add_plane(self.0, &mut packed, x, &mut plane[half..][..BYTES]);
                }
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

/// Adds the lowest plane of eight columns to the sums of 16 outputs, and shifts it out.
#[inline(always)]
fn add_plane(
    simd: WasmSimd128,
    packed: &mut [v128; TILE_COLUMNS],
    x: [v128; TILE_COLUMNS],
    sums: &mut [i32],
) {
    let low_bits = u8x16_splat(0b11);
    let (mut low, mut high) = (i16x8_splat(0), i16x8_splat(0));
    for (packed, x) in packed.iter_mut().zip(x) {
        let codes = v128_and(*packed, low_bits);
        *packed = u16x8_shr(*packed, 2);
        low = i16x8_add(low, i16x8_extmul_low_i8x16(codes, x));
        high = i16x8_add(high, i16x8_extmul_high_i8x16(codes, x));
    }
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
