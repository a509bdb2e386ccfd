//! Relaxed-SIMD version of [`ternary_panel`](crate::ternary_panel).
//!
//! Two vectors of four outputs meet up to four rows: eight sums stay in the sixteen registers that
//! engines have. `i32x4.relaxed_dot_i8x16_i7x16_add_s` multiplies activations with codes, which
//! are never negative as it asks; a pair is at most `2 × 2 × 128`, so none saturates.

use std::arch::wasm32::{i32x4_add, i32x4_relaxed_dot_i8x16_i7x16_add, i32x4_splat, v128};

use fearless_simd::{i32x4, prelude::*, u8x16, wasm32::WasmSimd128};

use super::Relaxed;
use crate::ternary_panel::{Four, PanelSums, Quad, TernaryPanel};

/// Bytes of a vector.
const BYTES: usize = 16;

/// Outputs of a vector.
const LANES: usize = 4;

/// Pairs of vectors of outputs of a quad.
const PAIRS: usize = 8;

impl TernaryPanel for Relaxed {
    /// In the first-level cache while all rows pass.
    const BLOCKS: usize = 2;
    const ROWS: usize = 4;

    fn fewest_rows(_columns: usize) -> usize {
        12
    }

    fn add_rows(self, panel: &[Quad], x: &[&[Four]], sums: &mut [PanelSums]) {
        match *x {
            [] => {}
            [a, b, c, d, ..] => add(self.simd, panel, [a, b, c, d], sums),
            [a, b] => add(self.simd, panel, [a, b], sums),
            [a, ref rest @ ..] => {
                let (first, sums) = sums.split_at_mut(1);
                add(self.simd, panel, [a], first);
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
    let x = x.map(|row| &row[..panel.len()]);
    for pair in 0..PAIRS {
        let mut sums = [[i32x4_splat(0); 2]; ROWS];
        for index in 0..panel.len() {
            let (vectors, _) = panel[index].0.as_chunks::<BYTES>();
            let codes: [v128; 2] = [
                u8x16::from_slice(simd, &vectors[2 * pair]).into(),
                u8x16::from_slice(simd, &vectors[2 * pair + 1]).into(),
            ];
            for row in 0..ROWS {
                let x = i32x4_splat(i32::from_le_bytes(x[row][index].map(i8::cast_unsigned)));
                let [a, b] = sums[row];
                sums[row] = [
                    i32x4_relaxed_dot_i8x16_i7x16_add(x, codes[0], a),
                    i32x4_relaxed_dot_i8x16_i7x16_add(x, codes[1], b),
                ];
            }
        }
        for (sums, panel_sums) in sums.into_iter().zip(&mut *panel_sums) {
            let (lanes, _) = panel_sums.0.as_chunks_mut::<LANES>();
            for (sum, lanes) in sums.into_iter().zip(&mut lanes[2 * pair..]) {
                let total: v128 = i32x4::from_slice(simd, lanes).into();
                i32x4::simd_from(simd, i32x4_add(total, sum)).store_slice(lanes);
            }
        }
    }
}
