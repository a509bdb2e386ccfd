//! Relaxed-SIMD version of [`setun_ops::column_sums`].
//!
//! Half a block of each column is loaded at a time: 16 bytes hold 64 codes, 16 of each plane. The
//! bytes of four columns are interleaved while they are packed; a relaxed dot product then adds
//! four columns for four outputs. Codes masked in place are at most 2, 8 and 32, so a pair is at
//! most `2 × 32 × 128 = 8192` and nothing saturates; sums of the second and third plane are 4 and
//! 16 times too large.

use std::arch::wasm32::{
    i8x16_shuffle, i32x4_relaxed_dot_i8x16_i7x16_add, i32x4_splat, u8x16_splat, u16x8_shr, v128,
    v128_and,
};

use fearless_simd::{i32x4, prelude::*, u8x16, wasm32::WasmSimd128};
use setun_ops::ternary::{BLOCK_BYTES, BLOCK_COLUMNS, PLANE_COLUMNS};

use super::Relaxed;
use crate::{
    column_sums::{ColumnSums, Columns, Inputs},
    wasm32::{touch, touch_blocks},
};

/// Bytes of a vector.
const BYTES: usize = 16;

/// Outputs of half a block.
const HALF: usize = BLOCK_COLUMNS / 2;

/// Outputs of a vector of sums.
const LANES: usize = 4;

impl ColumnSums for Relaxed {
    fn add_columns(self, columns: Columns<'_>, ahead: Columns<'_>, x: Inputs, sums: &mut [i32]) {
        let [a, b, c, d, e, f, g, h] = x.map(i8::cast_unsigned);
        let x = [[a, b, c, d], [e, f, g, h]].map(|four| i32x4_splat(i32::from_le_bytes(four)));
        let halves = columns[0].len() / BYTES;
        for (half, sums) in sums.chunks_exact_mut(HALF).take(halves).enumerate() {
            if half % 2 == 0 {
                touch_blocks(ahead, half / 2);
            }
            let [a, b, c, d, e, f, g, h] = columns.map(|column| -> v128 {
                u8x16::from_slice(self.simd, &column[half * BYTES..][..BYTES]).into()
            });
            let columns = [interleave([a, b, c, d]), interleave([e, f, g, h])];
            add_half(self.simd, columns, x, sums);
        }
    }

    /// Planes one after the other in each half of a block.
    fn place(self, output: usize) -> (usize, u32) {
        const SHIFTS: [u32; 4] = [0, 2, 4, 0];
        let (block, within) = (output / BLOCK_COLUMNS, output % BLOCK_COLUMNS);
        let (plane, byte) = (within / PLANE_COLUMNS, within % BLOCK_BYTES);
        let half = block * BLOCK_COLUMNS + byte / BYTES * HALF;
        (half + plane * BYTES + byte % BYTES, SHIFTS[plane])
    }

    fn prefetch(self, column: &[u8]) {
        touch(column);
    }
}

/// Adds two fours of columns to the sums of half a block.
#[inline(always)]
fn add_half(simd: WasmSimd128, columns: [[v128; 4]; 2], x: [v128; 2], sums: &mut [i32]) {
    let masks = [u8x16_splat(0x03), u8x16_splat(0x0c), u8x16_splat(0x30)];
    let (vectors, _) = sums.as_chunks_mut::<LANES>();
    for (plane, sums) in vectors.chunks_exact_mut(4).enumerate() {
        for (vector, sums) in sums.iter_mut().enumerate() {
            let mut sum: v128 = i32x4::from_slice(simd, sums).into();
            for (columns, x) in columns.iter().zip(x) {
                let codes = match masks.get(plane) {
                    Some(&mask) => v128_and(columns[vector], mask),
                    None => v128_and(u16x8_shr(columns[vector], 6), masks[0]),
                };
                sum = i32x4_relaxed_dot_i8x16_i7x16_add(x, codes, sum);
            }
            i32x4::simd_from(simd, sum).store_slice(sums);
        }
    }
}

/// Bytes of four columns side by side.
#[inline(always)]
fn interleave([a, b, c, d]: [v128; 4]) -> [v128; 4] {
    let (low, high) = (bytes_low(a, b), bytes_high(a, b));
    let (low_next, high_next) = (bytes_low(c, d), bytes_high(c, d));
    [
        pairs_low(low, low_next),
        pairs_high(low, low_next),
        pairs_low(high, high_next),
        pairs_high(high, high_next),
    ]
}

#[inline(always)]
fn bytes_low(a: v128, b: v128) -> v128 {
    i8x16_shuffle::<0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23>(a, b)
}

#[inline(always)]
fn bytes_high(a: v128, b: v128) -> v128 {
    i8x16_shuffle::<8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31>(a, b)
}

#[inline(always)]
fn pairs_low(a: v128, b: v128) -> v128 {
    i8x16_shuffle::<0, 1, 16, 17, 2, 3, 18, 19, 4, 5, 20, 21, 6, 7, 22, 23>(a, b)
}

#[inline(always)]
fn pairs_high(a: v128, b: v128) -> v128 {
    i8x16_shuffle::<8, 9, 24, 25, 10, 11, 26, 27, 12, 13, 28, 29, 14, 15, 30, 31>(a, b)
}
