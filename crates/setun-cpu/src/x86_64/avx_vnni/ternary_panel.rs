//! AVX-VNNI version of [`ternary_panel`](crate::ternary_panel).
//!
//! Two vectors of eight outputs meet up to six rows: twelve sums stay in registers, beside two
//! vectors of codes and one of activations. `vpdpbusd` cannot overflow, see `ternary_dot`.

#![expect(unsafe_code, reason = "functions for a feature that no token of a dependency proves")]

use std::arch::x86_64::{
    __m256, __m256i, _mm256_add_epi32, _mm256_add_ps, _mm256_cvtepi32_ps, _mm256_dpbusd_avx_epi32,
    _mm256_mul_ps, _mm256_set1_epi32, _mm256_set1_ps, _mm256_setzero_si256,
};

use fearless_simd::{f32x8, i32x8, prelude::*, u8x32, x86::Avx2};

use super::AvxVnni;
use crate::ternary_panel::{
    Four, PanelOutputs, PanelSums, Quad, RowRuns, TernaryPanel, UNPACKED_ROWS, as_long, part_of,
};

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

    fn add_scaled_rows(
        self,
        panel: &[Quad],
        x: &[&[Four]],
        runs: &[RowRuns],
        w: &[PanelOutputs],
        y: &mut [PanelOutputs],
    ) {
        // SAFETY: `self` exists only where the feature was detected.
        unsafe {
            match *x {
                [] => {}
                [a] => add_scaled(self.0, panel, [a], runs, w, y),
                [a, b] => add_scaled(self.0, panel, [a, b], runs, w, y),
                [a, b, c] => add_scaled(self.0, panel, [a, b, c], runs, w, y),
                [a, b, c, d] => add_scaled(self.0, panel, [a, b, c, d], runs, w, y),
                [a, b, c, d, e] => add_scaled(self.0, panel, [a, b, c, d, e], runs, w, y),
                [a, b, c, d, e, f, ..] => {
                    add_scaled(self.0, panel, [a, b, c, d, e, f], runs, w, y);
                }
            }
        }
    }
}

/// The sums over codes of a pair of vectors of outputs, in registers. (A function would not be inlined.)
macro_rules! sums {
    ($avx2:ident, $panel:ident, $x:ident, $pair:ident, $first:expr) => {{
        let mut sums: [[__m256i; 2]; ROWS] = $first;
        for index in 0..$panel.len() {
            let (vectors, _) = $panel[index].0.as_chunks::<VECTOR>();
            let codes: [__m256i; 2] = [
                u8x32::from_slice($avx2, &vectors[2 * $pair]).into(),
                u8x32::from_slice($avx2, &vectors[2 * $pair + 1]).into(),
            ];
            for row in 0..ROWS {
                // Not by the AVX2 kernel's function: it would be called, with its result in memory.
                let four = $x[row][index].map(i8::cast_unsigned);
                let x = _mm256_set1_epi32(i32::from_le_bytes(four));
                let [a, b] = sums[row];
                sums[row] = [
                    _mm256_dpbusd_avx_epi32(a, codes[0], x),
                    _mm256_dpbusd_avx_epi32(b, codes[1], x),
                ];
            }
        }
        sums
    }};
}

#[target_feature(enable = "avx2,avxvnni")]
fn add<const ROWS: usize>(
    avx2: Avx2,
    panel: &[Quad],
    x: [&[Four]; ROWS],
    panel_sums: &mut [PanelSums],
) {
    let (x, panel_sums) = (as_long(x, panel.len()), &mut panel_sums[..ROWS]);
    for pair in 0..VECTORS / 2 {
        let sums = sums!(avx2, panel, x, pair, [[_mm256_setzero_si256(); 2]; ROWS]);
        for row in 0..ROWS {
            for (part, sum) in sums[row].into_iter().enumerate() {
                let lanes = &mut panel_sums[row].0.as_chunks_mut::<LANES>().0[2 * pair + part];
                let total: __m256i = i32x8::from_slice(avx2, lanes).into();
                let total = _mm256_add_epi32(total, sum);
                i32x8::simd_from(avx2, total).store_slice(lanes);
            }
        }
    }
}

#[target_feature(enable = "avx2,avxvnni")]
fn add_scaled<const ROWS: usize>(
    avx2: Avx2,
    panel: &[Quad],
    x: [&[Four]; ROWS],
    runs: &[RowRuns],
    w: &[PanelOutputs],
    y: &mut [PanelOutputs],
) {
    let (runs, y) = (&runs[..ROWS], &mut y[..ROWS]);
    let quads = panel.len() / w.len().max(1);
    for (index, w) in w.iter().enumerate() {
        let (panel, x) = (&panel[index * quads..][..quads], part_of(x, index, quads));
        let mut first = [[_mm256_setzero_si256(); 2]; ROWS];
        for row in 0..ROWS {
            first[row] = [_mm256_set1_epi32(-runs[row][index].sum); 2];
        }
        for pair in 0..VECTORS / 2 {
            let sums = sums!(avx2, panel, x, pair, first);
            for row in 0..ROWS {
                for (part, sum) in sums[row].into_iter().enumerate() {
                    let at = 2 * pair + part;
                    let w: __m256 = f32x8::from_slice(avx2, &w.0.as_chunks::<LANES>().0[at]).into();
                    let y = &mut y[row].0.as_chunks_mut::<LANES>().0[at];
                    let before: __m256 = f32x8::from_slice(avx2, y).into();
                    let scales = _mm256_mul_ps(w, _mm256_set1_ps(runs[row][index].t));
                    let products = _mm256_mul_ps(_mm256_cvtepi32_ps(sum), scales);
                    f32x8::simd_from(avx2, _mm256_add_ps(before, products)).store_slice(y);
                }
            }
        }
    }
}
