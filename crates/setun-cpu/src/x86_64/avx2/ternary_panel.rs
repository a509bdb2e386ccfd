//! AVX2 version of [`ternary_panel`](crate::ternary_panel).
//!
//! Two vectors of eight outputs meet up to six rows. `vpmaddubsw` multiplies codes with
//! activations and adds pairs in 16 bits, of which each output has two lanes. A pair lies within
//! `−2 × 2 × 128` and `2 × 2 × 127`, so that those of 64 quads lie within 16 bits, −32,768
//! included. A panel is as long, and then in the first-level cache while all rows pass.

use std::arch::x86_64::{
    __m256i, _mm256_add_epi16, _mm256_add_epi32, _mm256_and_si256, _mm256_madd_epi16,
    _mm256_maddubs_epi16, _mm256_permute2x128_si256, _mm256_set1_epi8, _mm256_set1_epi16,
    _mm256_set1_epi32, _mm256_setzero_si256, _mm256_srli_epi16, _mm256_unpackhi_epi32,
    _mm256_unpackhi_epi64, _mm256_unpacklo_epi32, _mm256_unpacklo_epi64,
};

use fearless_simd::{f32x8, i32x8, prelude::*, u8x32, x86::Avx2};
use setun_ops::ternary::PLANE_COLUMNS;

use crate::{
    quantized::RowRun,
    ternary_dot::code_blocks,
    ternary_panel::{
        BLOCK_QUADS, Four, PanelOutputs, PanelSums, Quad, RowRuns, TernaryPanel, UNPACKED_ROWS,
        as_long, part_of,
    },
};

/// Outputs of a vector.
const LANES: usize = 8;

/// Bytes of a vector.
const VECTOR: usize = 32;

/// Vectors of outputs of a quad.
const VECTORS: usize = 8;

/// Quads whose 16-bit sums cannot overflow.
const QUADS: usize = 64;

impl TernaryPanel for Avx2 {
    const BLOCKS: usize = QUADS / BLOCK_QUADS;
    const ROWS: usize = 6;

    fn fewest_rows(columns: usize) -> usize {
        (columns / 200).clamp(5, 12)
    }

    fn unpack_rows(self, rows: [&[u8]; UNPACKED_ROWS], first: usize, panel: &mut [Quad]) {
        let (upper, lower) = rows.split_at(VECTORS);
        for (first, rows) in [(first, upper), (first + LANES, lower)] {
            eight_rows(self, rows.first_chunk().expect("eight of sixteen"), first, panel);
        }
    }

    fn add_rows(self, panel: &[Quad], x: &[&[Four]], sums: &mut [PanelSums]) {
        match *x {
            [] => {}
            [a] => one_row(self, panel, [a], sums),
            [a, b] => two_rows(self, panel, [a, b], sums),
            [a, b, c] => three_rows(self, panel, [a, b, c], sums),
            [a, b, c, d] => four_rows(self, panel, [a, b, c, d], sums),
            [a, b, c, d, e] => five_rows(self, panel, [a, b, c, d, e], sums),
            [a, b, c, d, e, f, ..] => six_rows(self, panel, [a, b, c, d, e, f], sums),
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
        match *x {
            [] => {}
            [a] => one_scaled(self, panel, [a], runs, w, y),
            [a, b] => two_scaled(self, panel, [a, b], runs, w, y),
            [a, b, c] => three_scaled(self, panel, [a, b, c], runs, w, y),
            [a, b, c, d] => four_scaled(self, panel, [a, b, c, d], runs, w, y),
            [a, b, c, d, e] => five_scaled(self, panel, [a, b, c, d, e], runs, w, y),
            [a, b, c, d, e, f, ..] => six_scaled(self, panel, [a, b, c, d, e, f], runs, w, y),
        }
    }
}

/// Sums over codes of a pair of vectors of outputs, in 16 bits. (Kernels cannot be generic.)
macro_rules! sums {
    ($avx2:ident, $panel:ident, $x:ident, $pair:ident, $rows:literal) => {{
        let mut sums = [[_mm256_setzero_si256(); 2]; $rows];
        for index in 0..$panel.len() {
            let codes = codes($avx2, &$panel[index], $pair);
            for row in 0..$rows {
                let x = splat($avx2, $x[row][index]);
                let [a, b] = sums[row];
                sums[row] = [
                    _mm256_add_epi16(a, _mm256_maddubs_epi16(codes[0], x)),
                    _mm256_add_epi16(b, _mm256_maddubs_epi16(codes[1], x)),
                ];
            }
        }
        sums
    }};
}

/// Two kernels for a number of rows: `$name` adds integer sums, `$scaled` adds scaled sums of runs.
macro_rules! rows {
    ($name:ident, $scaled:ident, $rows:literal) => {
        fearless_simd::kernel!(
            #[inline]
            fn $name(
                avx2: Avx2,
                panel: &[Quad],
                x: [&[Four]; $rows],
                panel_sums: &mut [PanelSums],
            ) {
                let panel = &panel[..panel.len().min(QUADS)];
                let (x, panel_sums) = (as_long(x, panel.len()), &mut panel_sums[..$rows]);
                for pair in 0..VECTORS / 2 {
                    let sums = sums!(avx2, panel, x, pair, $rows);
                    for row in 0..$rows {
                        let (lanes, _) = panel_sums[row].0.as_chunks_mut::<LANES>();
                        add_pairs(avx2, sums[row][0], &mut lanes[2 * pair]);
                        add_pairs(avx2, sums[row][1], &mut lanes[2 * pair + 1]);
                    }
                }
            }
        );

        fearless_simd::kernel!(
            #[inline]
            fn $scaled(
                avx2: Avx2,
                panel: &[Quad],
                x: [&[Four]; $rows],
                runs: &[RowRuns],
                w: &[PanelOutputs],
                y: &mut [PanelOutputs],
            ) {
                let (runs, y) = (&runs[..$rows], &mut y[..$rows]);
                let quads = panel.len().min(QUADS) / w.len().max(1);
                for (index, w) in w.iter().enumerate() {
                    let panel = &panel[index * quads..][..quads];
                    let x = part_of(x, index, quads);
                    for pair in 0..VECTORS / 2 {
                        let sums = sums!(avx2, panel, x, pair, $rows);
                        for row in 0..$rows {
                            let RowRun { t, sum } = runs[row][index];
                            for part in 0..2 {
                                let at = 2 * pair + part;
                                let w = f32x8::from_slice(avx2, &w.0.as_chunks::<LANES>().0[at]);
                                let y = &mut y[row].0.as_chunks_mut::<LANES>().0[at];
                                let sums = _mm256_madd_epi16(sums[row][part], _mm256_set1_epi16(1));
                                let dots = i32x8::simd_from(avx2, sums) - sum;
                                let products = f32x8::float_from(dots) * (w * t);
                                (f32x8::from_slice(avx2, y) + products).store_slice(y);
                            }
                        }
                    }
                }
            }
        );
    };
}

rows!(one_row, one_scaled, 1);
rows!(two_rows, two_scaled, 2);
rows!(three_rows, three_scaled, 3);
rows!(four_rows, four_scaled, 4);
rows!(five_rows, five_scaled, 5);
rows!(six_rows, six_scaled, 6);

fearless_simd::kernel!(
    #[inline]
    fn codes(avx2: Avx2, quad: &Quad, pair: usize) -> [__m256i; 2] {
        let (vectors, _) = quad.0.as_chunks::<VECTOR>();
        [
            u8x32::from_slice(avx2, &vectors[2 * pair]).into(),
            u8x32::from_slice(avx2, &vectors[2 * pair + 1]).into(),
        ]
    }
);

fearless_simd::kernel!(
    #[inline]
    fn splat(_avx2: Avx2, x: Four) -> __m256i {
        _mm256_set1_epi32(i32::from_le_bytes(x.map(i8::cast_unsigned)))
    }
);

fearless_simd::kernel!(
    #[inline]
    fn add_pairs(avx2: Avx2, sums: __m256i, lanes: &mut [i32; LANES]) {
        let total: __m256i = i32x8::from_slice(avx2, lanes).into();
        let total = _mm256_add_epi32(total, _mm256_madd_epi16(sums, _mm256_set1_epi16(1)));
        i32x8::simd_from(avx2, total).store_slice(lanes);
    }
);

fearless_simd::kernel!(
    #[inline]
    fn eight_rows(avx2: Avx2, rows: &[&[u8]; 8], first: usize, panel: &mut [Quad]) {
        let vector = first / LANES % VECTORS;
        let (panel, _) = panel.as_chunks_mut::<BLOCK_QUADS>();
        let rows = code_blocks(*rows, panel.len());
        for (block, panel) in panel.iter_mut().enumerate() {
            let mut vectors = [_mm256_setzero_si256(); 8];
            for (row, vector) in rows.iter().zip(&mut vectors) {
                *vector = u8x32::from_slice(avx2, &row[block]).into();
            }
            for (at, mut packed) in transpose(avx2, vectors).into_iter().enumerate() {
                for plane in 0..4 {
                    let quad = &mut panel[plane * (PLANE_COLUMNS / 4) + at];
                    store_codes(avx2, packed, &mut quad.0.as_chunks_mut().0[vector]);
                    packed = _mm256_srli_epi16::<2>(packed);
                }
            }
        }
    }
);

fearless_simd::kernel!(
    #[inline]
    fn store_codes(avx2: Avx2, packed: __m256i, place: &mut [u8; VECTOR]) {
        let codes = _mm256_and_si256(packed, _mm256_set1_epi8(0b11));
        u8x32::simd_from(avx2, codes).store_slice(place);
    }
);

fearless_simd::kernel!(
    /// Dword `j` of vector `i` goes to dword `i` of vector `j`.
    #[inline]
    fn transpose(_avx2: Avx2, rows: [__m256i; 8]) -> [__m256i; 8] {
        let mut pairs = rows;
        for i in (0..8).step_by(2) {
            pairs[i] = _mm256_unpacklo_epi32(rows[i], rows[i + 1]);
            pairs[i + 1] = _mm256_unpackhi_epi32(rows[i], rows[i + 1]);
        }
        let mut columns = rows;
        for (c, (from, high)) in
            [(0, false), (0, true), (1, false), (1, true)].into_iter().enumerate()
        {
            let fours = [pairs[from], pairs[from + 2], pairs[from + 4], pairs[from + 6]];
            let [upper, lower] = [[fours[0], fours[1]], [fours[2], fours[3]]].map(|[a, b]| {
                if high { _mm256_unpackhi_epi64(a, b) } else { _mm256_unpacklo_epi64(a, b) }
            });
            columns[c] = _mm256_permute2x128_si256::<0x20>(upper, lower);
            columns[4 + c] = _mm256_permute2x128_si256::<0x31>(upper, lower);
        }
        columns
    }
);
