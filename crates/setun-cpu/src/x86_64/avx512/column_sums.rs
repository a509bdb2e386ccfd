//! AVX-512 version of [`setun_ops::column_sums`].
//!
//! A load brings 256 codes of a column. The bytes of four columns are interleaved while they are
//! packed, which gives four vectors of sixteen outputs for each plane; `vpdpbusd` then adds four
//! columns at once. Codes are masked in place: the sums of the planes are 1, 4, 16 and 64 times
//! too large. They stay below 2^31 up to `132,000` columns: `132,000 × 127 × 128`.

use std::arch::x86_64::{
    __m512i, _mm512_and_si512, _mm512_dpbusd_epi32, _mm512_set1_epi8, _mm512_set1_epi32,
    _mm512_unpackhi_epi8, _mm512_unpackhi_epi16, _mm512_unpacklo_epi8, _mm512_unpacklo_epi16,
};

use fearless_simd::{i32x16, prelude::*, u8x64, x86::Avx512};
use setun_ops::ternary::{BLOCK_BYTES, PLANE_COLUMNS};

use crate::{
    column_sums::{ColumnSums, Columns, Inputs, TILE_SUMS},
    x86_64::{prefetch, prefetch_blocks},
};

/// Bytes of a column in a load.
const LOAD: usize = 2 * BLOCK_BYTES;

/// Outputs of a vector.
const LANES: usize = 16;

impl ColumnSums for Avx512 {
    fn add_columns(self, columns: Columns<'_>, ahead: Columns<'_>, x: Inputs, sums: &mut [i32]) {
        eight_columns(self, columns, ahead, x, sums);
    }

    fn place(self, output: usize) -> (usize, u32) {
        const SHIFTS: [u32; 4] = [0, 2, 4, 6];
        let (tile, within) = (output / TILE_SUMS, output % TILE_SUMS);
        let (block, plane) = (within / (4 * PLANE_COLUMNS), within / PLANE_COLUMNS % 4);
        let byte = block * BLOCK_BYTES + within % PLANE_COLUMNS;
        // Bytes are interleaved within 16: four vectors, each with four outputs of every 16.
        let (quarter, vector) = (byte / 16, byte % 16 / 4);
        let lane = quarter * 4 + byte % 4;
        (tile * TILE_SUMS + (plane * 4 + vector) * LANES + lane, SHIFTS[plane])
    }

    fn prefetch(self, column: &[u8]) {
        prefetch(column);
    }
}

fearless_simd::kernel!(
    #[inline]
    fn eight_columns(
        avx512: Avx512,
        columns: [&[u8]; 8],
        ahead: [&[u8]; 8],
        activations: [i8; 8],
        sums: &mut [i32],
    ) {
        let masks = [0x03, 0x0c, 0x30, 0xc0_u8.cast_signed()].map(|mask| _mm512_set1_epi8(mask));
        let [x_first, x_second] = splat_fours(avx512, activations);
        let [a, b, c, d, e, f, g, h] = columns;
        let (a, b, c, d) = (loads(a), loads(b), loads(c), loads(d));
        let (e, f, g, h) = (loads(e), loads(f), loads(g), loads(h));
        for (tile, sums) in sums.chunks_exact_mut(TILE_SUMS).enumerate() {
            prefetch_blocks(ahead, 2 * tile);
            // One by one: a closure over an array is called, with its result in memory.
            let (a, b) = (codes(avx512, &a[tile]), codes(avx512, &b[tile]));
            let (c, d) = (codes(avx512, &c[tile]), codes(avx512, &d[tile]));
            let first = interleave(avx512, [a, b, c, d]);
            let (e, f) = (codes(avx512, &e[tile]), codes(avx512, &f[tile]));
            let (g, h) = (codes(avx512, &g[tile]), codes(avx512, &h[tile]));
            let second = interleave(avx512, [e, f, g, h]);
            let (vectors, _) = sums.as_chunks_mut::<LANES>();
            for (mask, sums) in masks.into_iter().zip(vectors.chunks_exact_mut(4)) {
                for ((sums, first), second) in sums.iter_mut().zip(first).zip(second) {
                    let sum: __m512i = i32x16::from_slice(avx512, sums).into();
                    let sum = _mm512_dpbusd_epi32(sum, _mm512_and_si512(first, mask), x_first);
                    let sum = _mm512_dpbusd_epi32(sum, _mm512_and_si512(second, mask), x_second);
                    i32x16::simd_from(avx512, sum).store_slice(sums);
                }
            }
        }
    }
);

fearless_simd::kernel!(
    /// Four activations side by side, again and again.
    #[inline]
    fn splat_fours(_avx512: Avx512, x: [i8; 8]) -> [__m512i; 2] {
        let [a, b, c, d, e, f, g, h] = x;
        let four = |x: [i8; 4]| i32::from_le_bytes(x.map(i8::cast_unsigned));
        [_mm512_set1_epi32(four([a, b, c, d])), _mm512_set1_epi32(four([e, f, g, h]))]
    }
);

/// A column in parts of a load each.
#[inline(always)]
fn loads(column: &[u8]) -> &[[u8; LOAD]] {
    column.as_chunks().0
}

fearless_simd::kernel!(
    /// 256 codes of a column.
    #[inline]
    fn codes(avx512: Avx512, load: &[u8; LOAD]) -> __m512i {
        u8x64::from_slice(avx512, load).into()
    }
);

fearless_simd::kernel!(
    /// Bytes of four columns side by side.
    #[inline]
    fn interleave(_avx512: Avx512, columns: [__m512i; 4]) -> [__m512i; 4] {
        let [a, b, c, d] = columns;
        let (low, high) = (_mm512_unpacklo_epi8(a, b), _mm512_unpackhi_epi8(a, b));
        let (low_next, high_next) = (_mm512_unpacklo_epi8(c, d), _mm512_unpackhi_epi8(c, d));
        [
            _mm512_unpacklo_epi16(low, low_next),
            _mm512_unpackhi_epi16(low, low_next),
            _mm512_unpacklo_epi16(high, high_next),
            _mm512_unpackhi_epi16(high, high_next),
        ]
    }
);
