//! AVX-VNNI version of [`ternary_panel`](crate::ternary_panel).
//!
//! Two vectors of eight outputs meet up to six rows: twelve sums stay in registers, beside two
//! vectors of codes and one of activations. `vpdpbusd` cannot overflow, see `ternary_dot`.

#![expect(unsafe_code, reason = "functions for a feature that no token of a dependency proves")]

use std::arch::x86_64::{
    __m256i, _mm256_add_epi32, _mm256_dpbusd_avx_epi32, _mm256_set1_epi32, _mm256_setzero_si256,
};

use fearless_simd::{i32x8, prelude::*, u8x32, x86::Avx2};

use super::AvxVnni;
use crate::ternary_panel::{Four, PanelSums, Quad, TernaryPanel, UNPACKED_ROWS, as_long};

/// Outputs of a vector.
const LANES: usize = 8;

/// Bytes of a vector.
const VECTOR: usize = 32;

/// Vectors of outputs of a quad.
const VECTORS: usize = 8;

impl TernaryPanel for AvxVnni {
    /// In the first-level cache while all rows pass.
    const BLOCKS: usize = 2;
    const ROWS: usize = 6;

    fn fewest_rows(columns: usize) -> usize {
        (columns / 210).clamp(5, 22)
    }

    fn unpack_rows(self, rows: [&[u8]; UNPACKED_ROWS], first: usize, panel: &mut [Quad]) {
        self.0.unpack_rows(rows, first, panel);
    }

    fn add_rows(self, panel: &[Quad], x: &[&[Four]], sums: &mut [PanelSums]) {
        // SAFETY: `self` exists only where the feature was detected.
        unsafe {
            match *x {
                [] => {}
                [a] => add(self.0, panel, [a], sums),
                [a, b] => add(self.0, panel, [a, b], sums),
                [a, b, c] => add(self.0, panel, [a, b, c], sums),
                [a, b, c, d] => add(self.0, panel, [a, b, c, d], sums),
                [a, b, c, d, e] => add(self.0, panel, [a, b, c, d, e], sums),
                [a, b, c, d, e, f, ..] => add(self.0, panel, [a, b, c, d, e, f], sums),
            }
        }
    }
}

#[target_feature(enable = "avx2,avxvnni")]
fn add<const ROWS: usize>(
    avx2: Avx2,
    panel: &[Quad],
    x: [&[Four]; ROWS],
    panel_sums: &mut [PanelSums],
) {
    let x = as_long(x, panel.len());
    for pair in 0..VECTORS / 2 {
        let mut sums = [[_mm256_setzero_si256(); 2]; ROWS];
        for index in 0..panel.len() {
            let (vectors, _) = panel[index].0.as_chunks::<VECTOR>();
            let codes: [__m256i; 2] = [
                u8x32::from_slice(avx2, &vectors[2 * pair]).into(),
                u8x32::from_slice(avx2, &vectors[2 * pair + 1]).into(),
            ];
            for row in 0..ROWS {
                // Not by the AVX2 kernel's function: it would be called, with its result in memory.
                let x = _mm256_set1_epi32(i32::from_le_bytes(x[row][index].map(i8::cast_unsigned)));
                let [a, b] = sums[row];
                sums[row] = [
                    _mm256_dpbusd_avx_epi32(a, codes[0], x),
                    _mm256_dpbusd_avx_epi32(b, codes[1], x),
                ];
            }
        }
        for (sums, panel_sums) in sums.into_iter().zip(&mut *panel_sums) {
            let (lanes, _) = panel_sums.0.as_chunks_mut::<LANES>();
            for (sum, lanes) in sums.into_iter().zip(&mut lanes[2 * pair..]) {
                let total: __m256i = i32x8::from_slice(avx2, lanes).into();
                i32x8::simd_from(avx2, _mm256_add_epi32(total, sum)).store_slice(lanes);
            }
        }
    }
}
