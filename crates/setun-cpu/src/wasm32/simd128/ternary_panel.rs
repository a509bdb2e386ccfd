//! WebAssembly SIMD version of [`ternary_panel`](crate::ternary_panel).
//!
//! A vector of four outputs meets up to four rows. Codes are widened to 16 bits once for all rows,
//! and activations once for all outputs, as engines make long work of products that widen. Lanes
//! of 16 bits take the products of 64 quads, at most `64 × 2 × 128 = 16,384`; a panel is as long.

use std::arch::wasm32::{
    i16x8_add, i16x8_extend_low_i8x16, i16x8_mul, i16x8_splat, i32x4_add,
    i32x4_extadd_pairwise_i16x8, i32x4_shuffle, i32x4_splat, u16x8_extend_high_u8x16,
    u16x8_extend_low_u8x16, v128,
};

use fearless_simd::{i32x4, prelude::*, u8x16, wasm32::WasmSimd128};

use super::Simd128;
use crate::ternary_panel::{BLOCK_QUADS, Four, PanelSums, Quad, TernaryPanel};

/// Bytes of a vector.
const BYTES: usize = 16;

/// Outputs of a vector.
const LANES: usize = 4;

/// Vectors of outputs of a quad.
const VECTORS: usize = 16;

/// Quads whose 16-bit sums cannot overflow.
const QUADS: usize = 64;

impl TernaryPanel for Simd128 {
    const BLOCKS: usize = QUADS / BLOCK_QUADS;
    const ROWS: usize = 4;

    fn fewest_rows(_columns: usize) -> usize {
        5
    }

    fn add_rows(self, panel: &[Quad], x: &[&[Four]], sums: &mut [PanelSums]) {
        match *x {
            [] => {}
            [a, b, c, d, ..] => add(self.0, panel, [a, b, c, d], sums),
            [a, b] => add(self.0, panel, [a, b], sums),
            [a, ref rest @ ..] => {
                let (first, sums) = sums.split_at_mut(1);
                add(self.0, panel, [a], first);
                self.add_rows(panel, rest, sums);
            }
        }
    }
}

#[inline(always)]
fn add<const ROWS: usize>(
    simd: WasmSimd128,
    panel: &[Quad],
    x: [&[Four]; ROWS],
    panel_sums: &mut [PanelSums],
) {
    let panel = &panel[..panel.len().min(QUADS)];
    let x = x.map(|row| &row[..panel.len()]);
    for vector in 0..VECTORS {
        let mut sums = [[i16x8_splat(0); 2]; ROWS];
        for index in 0..panel.len() {
            let (vectors, _) = panel[index].0.as_chunks::<BYTES>();
            let codes: v128 = u8x16::from_slice(simd, &vectors[vector]).into();
            let (low, high) = (u16x8_extend_low_u8x16(codes), u16x8_extend_high_u8x16(codes));
            for row in 0..ROWS {
                let x = i32x4_splat(i32::from_le_bytes(x[row][index].map(i8::cast_unsigned)));
                let x = i16x8_extend_low_i8x16(x);
                let [a, b] = sums[row];
                sums[row] = [i16x8_add(a, i16x8_mul(low, x)), i16x8_add(b, i16x8_mul(high, x))];
            }
        }
        for (sums, panel_sums) in sums.into_iter().zip(&mut *panel_sums) {
            let lanes = &mut panel_sums.0.as_chunks_mut::<LANES>().0[vector];
            let total: v128 = i32x4::from_slice(simd, lanes).into();
            i32x4::simd_from(simd, i32x4_add(total, add_fours(sums))).store_slice(lanes);
        }
    }
}

/// The sums of four neighbouring lanes.
#[inline(always)]
fn add_fours(sums: [v128; 2]) -> v128 {
    let [low, high] = sums.map(|sum| i32x4_extadd_pairwise_i16x8(sum));
    i32x4_add(i32x4_shuffle::<0, 2, 4, 6>(low, high), i32x4_shuffle::<1, 3, 5, 7>(low, high))
}
