//! AVX2 version of [`setun_ops::column_sums`].
//!
//! A load brings 128 codes of a column. The bytes of four columns are interleaved while they are
//! packed, which gives four vectors of eight outputs for each plane. `vpmaddubsw` adds two columns
//! in 16 bits, where two fours of columns come together: at most `4 × 2 × 128 = 1024`.

use std::arch::x86_64::{
    __m256i, _mm256_add_epi16, _mm256_add_epi32, _mm256_and_si256, _mm256_madd_epi16,
    _mm256_maddubs_epi16, _mm256_set1_epi8, _mm256_set1_epi16, _mm256_set1_epi32,
    _mm256_srli_epi16, _mm256_unpackhi_epi8, _mm256_unpackhi_epi16, _mm256_unpacklo_epi8,
    _mm256_unpacklo_epi16,
};

use fearless_simd::{i32x8, prelude::*, u8x32, x86::Avx2};
use setun_ops::ternary::{BLOCK_BYTES, BLOCK_COLUMNS, PLANE_COLUMNS};

use crate::{
    column_sums::{ColumnSums, Columns, Inputs},
    x86_64::{prefetch, prefetch_blocks},
};

/// Outputs of a vector.
const LANES: usize = 8;

impl ColumnSums for Avx2 {
    fn add_columns(self, columns: Columns<'_>, ahead: Columns<'_>, x: Inputs, sums: &mut [i32]) {
        eight_columns(self, columns, ahead, x, sums);
    }

    fn place(self, output: usize) -> (usize, u32) {
        let (block, within) = (output / BLOCK_COLUMNS, output % BLOCK_COLUMNS);
        let (plane, byte) = (within / PLANE_COLUMNS, within % PLANE_COLUMNS);
        // Bytes are interleaved within 16: four vectors, each with four outputs of every 16.
        let (half, vector) = (byte / 16, byte % 16 / 4);
        (block * BLOCK_COLUMNS + (plane * 4 + vector) * LANES + half * 4 + byte % 4, 0)
    }

    fn prefetch(self, column: &[u8]) {
        prefetch(column);
    }
}

fearless_simd::kernel!(
    #[inline]
    fn eight_columns(
        avx2: Avx2,
        columns: [&[u8]; 8],
        ahead: [&[u8]; 8],
        activations: [i8; 8],
        sums: &mut [i32],
    ) {
        let (low_bits, ones) = (_mm256_set1_epi8(0b11), _mm256_set1_epi16(1));
        let x = splat_fours(avx2, activations);
        let [a, b, c, d, e, f, g, h] = columns;
        let blocks = columns[0].len() / BLOCK_BYTES;
        for (block, sums) in sums.chunks_exact_mut(BLOCK_COLUMNS).take(blocks).enumerate() {
            prefetch_blocks(ahead, block);
            let mut first = four_columns(avx2, [a, b, c, d], block);
            let mut second = four_columns(avx2, [e, f, g, h], block);
            let (vectors, _) = sums.as_chunks_mut::<LANES>();
            for sums in vectors.chunks_exact_mut(4) {
                for ((sums, first), second) in sums.iter_mut().zip(&mut first).zip(&mut second) {
                    let pairs = _mm256_add_epi16(
                        _mm256_maddubs_epi16(_mm256_and_si256(*first, low_bits), x[0]),
                        _mm256_maddubs_epi16(_mm256_and_si256(*second, low_bits), x[1]),
                    );
                    *first = _mm256_srli_epi16::<2>(*first);
                    *second = _mm256_srli_epi16::<2>(*second);
                    let sum: __m256i = i32x8::from_slice(avx2, sums).into();
                    let sum = _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, ones));
                    i32x8::simd_from(avx2, sum).store_slice(sums);
                }
            }
        }
    }
);

fearless_simd::kernel!(
    /// Four activations side by side, again and again.
    #[inline]
    fn splat_fours(_avx2: Avx2, x: [i8; 8]) -> [__m256i; 2] {
        let [a, b, c, d, e, f, g, h] = x;
        let four = |x: [i8; 4]| i32::from_le_bytes(x.map(i8::cast_unsigned));
        [_mm256_set1_epi32(four([a, b, c, d])), _mm256_set1_epi32(four([e, f, g, h]))]
    }
);

fearless_simd::kernel!(
    /// A block of each of four columns, bytes side by side.
    #[inline]
    fn four_columns(avx2: Avx2, columns: [&[u8]; 4], block: usize) -> [__m256i; 4] {
        let [a, b, c, d] = columns;
        let (a, b) = (codes(avx2, a, block), codes(avx2, b, block));
        let (c, d) = (codes(avx2, c, block), codes(avx2, d, block));
        interleave(avx2, [a, b, c, d])
    }
);

fearless_simd::kernel!(
    #[inline]
    fn codes(avx2: Avx2, column: &[u8], block: usize) -> __m256i {
        u8x32::from_slice(avx2, &column[block * BLOCK_BYTES..][..BLOCK_BYTES]).into()
    }
);

fearless_simd::kernel!(
    /// Bytes of four columns side by side.
    #[inline]
    fn interleave(_avx2: Avx2, columns: [__m256i; 4]) -> [__m256i; 4] {
        let [a, b, c, d] = columns;
        let (low, high) = (_mm256_unpacklo_epi8(a, b), _mm256_unpackhi_epi8(a, b));
        let (low_next, high_next) = (_mm256_unpacklo_epi8(c, d), _mm256_unpackhi_epi8(c, d));
        [
            _mm256_unpacklo_epi16(low, low_next),
            _mm256_unpackhi_epi16(low, low_next),
            _mm256_unpacklo_epi16(high, high_next),
            _mm256_unpackhi_epi16(high, high_next),
        ]
    }
);
