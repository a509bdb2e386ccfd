//! AVX-512 version of [`ternary_panel`](crate::ternary_panel).
//!
//! Four vectors of sixteen outputs meet up to six rows: 24 sums stay in registers, beside four
//! vectors of codes and one of activations. `vpdpbusd` cannot overflow, see `ternary_dot`.
//!
//! Packed rows are transposed before they are unpacked: a dword holds codes of four neighbouring
//! columns in each of its planes, so that a transposed vector gives four quads of sixteen outputs.

use std::arch::x86_64::{
    __m512i, _mm512_and_si512, _mm512_dpbusd_epi32, _mm512_set1_epi8, _mm512_set1_epi32,
    _mm512_setzero_si512, _mm512_shuffle_i32x4, _mm512_srli_epi16, _mm512_unpackhi_epi32,
    _mm512_unpackhi_epi64, _mm512_unpacklo_epi32, _mm512_unpacklo_epi64, _mm512_zextsi256_si512,
};

use fearless_simd::{f32x16, i32x16, prelude::*, u8x32, u8x64, x86::Avx512};
use setun_ops::ternary::{BLOCK_BYTES, PLANE_COLUMNS};

use crate::ternary_panel::{
    BLOCK_QUADS, FEWEST_PANEL_ROWS, Four, MAX_BLOCKS, PanelOutputs, PanelSums, Quad, RowRuns,
    TernaryPanel, UNPACKED_ROWS, as_long, part_of,
};

/// Outputs of a vector.
const LANES: usize = 16;

/// Bytes of a vector.
const VECTOR: usize = 64;

impl TernaryPanel for Avx512 {
    const BLOCKS: usize = MAX_BLOCKS;
    const ROWS: usize = 6;

    fn fewest_rows(columns: usize) -> usize {
        (columns / 80).clamp(FEWEST_PANEL_ROWS, 24)
    }

    fn unpack_rows(self, rows: [&[u8]; UNPACKED_ROWS], first: usize, panel: &mut [Quad]) {
        sixteen_rows(self, rows, first, panel);
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

/// The sums over codes of `$rows` rows, in registers. (Kernels cannot be generic.)
macro_rules! sums {
    ($avx512:ident, $panel:ident, $x:ident, $first:expr, $rows:literal) => {{
        let mut sums: [[__m512i; 4]; $rows] = $first;
        for index in 0..$panel.len() {
            let codes = codes($avx512, &$panel[index]);
            for row in 0..$rows {
                let x = splat($avx512, $x[row][index]);
                let [a, b, c, d] = sums[row];
                sums[row] = [
                    _mm512_dpbusd_epi32(a, codes[0], x),
                    _mm512_dpbusd_epi32(b, codes[1], x),
                    _mm512_dpbusd_epi32(c, codes[2], x),
                    _mm512_dpbusd_epi32(d, codes[3], x),
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
                avx512: Avx512,
                panel: &[Quad],
                x: [&[Four]; $rows],
                panel_sums: &mut [PanelSums],
            ) {
                let x = as_long(x, panel.len());
                let zeros = [[_mm512_setzero_si512(); 4]; $rows];
                let sums = sums!(avx512, panel, x, zeros, $rows);
                let panel_sums = &mut panel_sums[..$rows];
                for row in 0..$rows {
                    for part in 0..4 {
                        let lanes = &mut panel_sums[row].0.as_chunks_mut::<LANES>().0[part];
                        let sum = i32x16::simd_from(avx512, sums[row][part]);
                        (i32x16::from_slice(avx512, lanes) + sum).store_slice(lanes);
                    }
                }
            }
        );

        fearless_simd::kernel!(
            #[inline]
            fn $scaled(
                avx512: Avx512,
                panel: &[Quad],
                x: [&[Four]; $rows],
                runs: &[RowRuns],
                w: &[PanelOutputs],
                y: &mut [PanelOutputs],
            ) {
                let (runs, y) = (&runs[..$rows], &mut y[..$rows]);
                let quads = panel.len() / w.len().max(1);
                for (index, w) in w.iter().enumerate() {
                    let mut first = [[_mm512_setzero_si512(); 4]; $rows];
                    for row in 0..$rows {
                        first[row] = [_mm512_set1_epi32(-runs[row][index].sum); 4];
                    }
                    let panel = &panel[index * quads..][..quads];
                    let x = part_of(x, index, quads);
                    let sums = sums!(avx512, panel, x, first, $rows);
                    for row in 0..$rows {
                        let t = runs[row][index].t;
                        for part in 0..4 {
                            let w = f32x16::from_slice(avx512, &w.0.as_chunks::<LANES>().0[part]);
                            let y = &mut y[row].0.as_chunks_mut::<LANES>().0[part];
                            let dots = i32x16::simd_from(avx512, sums[row][part]);
                            let products = f32x16::float_from(dots) * (w * t);
                            (f32x16::from_slice(avx512, y) + products).store_slice(y);
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
    fn codes(avx512: Avx512, quad: &Quad) -> [__m512i; 4] {
        let (vectors, _) = quad.0.as_chunks::<VECTOR>();
        [
            u8x64::from_slice(avx512, &vectors[0]).into(),
            u8x64::from_slice(avx512, &vectors[1]).into(),
            u8x64::from_slice(avx512, &vectors[2]).into(),
            u8x64::from_slice(avx512, &vectors[3]).into(),
        ]
    }
);

fearless_simd::kernel!(
    #[inline]
    fn splat(_avx512: Avx512, x: Four) -> __m512i {
        _mm512_set1_epi32(i32::from_le_bytes(x.map(i8::cast_unsigned)))
    }
);

fearless_simd::kernel!(
    #[inline]
    fn sixteen_rows(avx512: Avx512, rows: [&[u8]; 16], first: usize, panel: &mut [Quad]) {
        for (pair, panel) in panel.chunks_mut(2 * BLOCK_QUADS).enumerate() {
            let vectors = transpose(avx512, pair_of_blocks(avx512, rows, pair));
            for (block, panel) in panel.chunks_exact_mut(BLOCK_QUADS).enumerate() {
                for at in 0..BLOCK_BYTES / 4 {
                    let mut packed = vectors[block * (BLOCK_BYTES / 4) + at];
                    for plane in 0..4 {
                        let quad = &mut panel[plane * (PLANE_COLUMNS / 4) + at];
                        store_codes(avx512, packed, &mut quad.0[4 * first..][..VECTOR]);
                        packed = _mm512_srli_epi16::<2>(packed);
                    }
                }
            }
        }
    }
);

fearless_simd::kernel!(
    /// A pair of blocks of each row, zeros for a second block that is not there.
    #[inline]
    fn pair_of_blocks(avx512: Avx512, rows: [&[u8]; 16], pair: usize) -> [__m512i; 16] {
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = rows;
        // One by one: as a loop they would pass through memory.
        [
            row_pair(avx512, a, pair),
            row_pair(avx512, b, pair),
            row_pair(avx512, c, pair),
            row_pair(avx512, d, pair),
            row_pair(avx512, e, pair),
            row_pair(avx512, f, pair),
            row_pair(avx512, g, pair),
            row_pair(avx512, h, pair),
            row_pair(avx512, i, pair),
            row_pair(avx512, j, pair),
            row_pair(avx512, k, pair),
            row_pair(avx512, l, pair),
            row_pair(avx512, m, pair),
            row_pair(avx512, n, pair),
            row_pair(avx512, o, pair),
            row_pair(avx512, p, pair),
        ]
    }
);

fearless_simd::kernel!(
    #[inline]
    fn row_pair(avx512: Avx512, row: &[u8], pair: usize) -> __m512i {
        let row = &row[pair * VECTOR..];
        if let Some(whole) = row.get(..VECTOR) {
            return u8x64::from_slice(avx512, whole).into();
        }
        _mm512_zextsi256_si512(u8x32::from_slice(avx512, &row[..BLOCK_BYTES]).into())
    }
);

fearless_simd::kernel!(
    #[inline]
    fn store_codes(avx512: Avx512, packed: __m512i, place: &mut [u8]) {
        let codes = _mm512_and_si512(packed, _mm512_set1_epi8(0b11));
        u8x64::simd_from(avx512, codes).store_slice(place);
    }
);

fearless_simd::kernel!(
    /// Dword `j` of vector `i` goes to dword `i` of vector `j`.
    #[inline]
    fn transpose(_avx512: Avx512, rows: [__m512i; 16]) -> [__m512i; 16] {
        let mut pairs = rows;
        for i in (0..16).step_by(2) {
            pairs[i] = _mm512_unpacklo_epi32(rows[i], rows[i + 1]);
            pairs[i + 1] = _mm512_unpackhi_epi32(rows[i], rows[i + 1]);
        }
        // Of four rows: lane `l` of vector `4 × rows + c` has their dwords `4 × l + c`.
        let mut fours = pairs;
        for i in (0..16).step_by(4) {
            fours[i] = _mm512_unpacklo_epi64(pairs[i], pairs[i + 2]);
            fours[i + 1] = _mm512_unpackhi_epi64(pairs[i], pairs[i + 2]);
            fours[i + 2] = _mm512_unpacklo_epi64(pairs[i + 1], pairs[i + 3]);
            fours[i + 3] = _mm512_unpackhi_epi64(pairs[i + 1], pairs[i + 3]);
        }
        let mut columns = rows;
        for c in 0..4 {
            let [a, b, c_rows, d] = [fours[c], fours[4 + c], fours[8 + c], fours[12 + c]];
            let (low, low_next) =
                (_mm512_shuffle_i32x4::<0x44>(a, b), _mm512_shuffle_i32x4::<0x44>(c_rows, d));
            let (high, high_next) =
                (_mm512_shuffle_i32x4::<0xee>(a, b), _mm512_shuffle_i32x4::<0xee>(c_rows, d));
            columns[c] = _mm512_shuffle_i32x4::<0x88>(low, low_next);
            columns[4 + c] = _mm512_shuffle_i32x4::<0xdd>(low, low_next);
            columns[8 + c] = _mm512_shuffle_i32x4::<0x88>(high, high_next);
            columns[12 + c] = _mm512_shuffle_i32x4::<0xdd>(high, high_next);
        }
        columns
    }
);
