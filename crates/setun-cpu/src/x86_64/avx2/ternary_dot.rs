//! AVX2 version of [`setun_ops::ternary_dot()`].
//!
//! A load brings 128 codes of a row; a shift and a mask unpack each plane of 32. `vpmaddubsw`
//! multiplies them with activations and adds pairs in 16 bits, where it saturates: a pair is at
//! most `2 × 2 × 128 = 512`, so 16-bit sums are widened every [`BLOCKS`] blocks, before 63 pairs
//! have come together.

use std::arch::x86_64::{
    __m128i, __m256i, _mm_add_epi32, _mm256_add_epi16, _mm256_add_epi32, _mm256_and_si256,
    _mm256_castsi256_si128, _mm256_extracti128_si256, _mm256_hadd_epi32, _mm256_madd_epi16,
    _mm256_maddubs_epi16, _mm256_set1_epi8, _mm256_set1_epi16, _mm256_setzero_si256,
    _mm256_srli_epi16,
};

use fearless_simd::{i8x32, i32x4, prelude::*, u8x32, x86::Avx2};
use setun_ops::ternary::{BLOCK_BYTES, BLOCK_COLUMNS, PLANE_COLUMNS};

use crate::{
    ternary_dot::{CodeDots, CodeRows, TernaryDot, WideDots, WideRows},
    x86_64::prefetch_blocks,
};

/// Blocks whose 16-bit sums cannot saturate: `8 × 4 × 512 = 16,384`.
const BLOCKS: usize = 8;

impl TernaryDot for Avx2 {
    type Lanes = Self;
    type Columns = Self;

    fn lanes(self) -> Self {
        self
    }

    fn columns(self) -> Self {
        self
    }

    fn code_dots(self, weights: CodeRows<'_>, ahead: CodeRows<'_>, x: &[i8]) -> CodeDots {
        four_rows(self, weights, ahead, x)
    }

    fn code_dots_wide(self, [a, b, c, d]: CodeRows<'_>, x: WideRows<'_>) -> WideDots {
        // Two rows at a time: sixteen sums would not leave a register for the codes.
        let upper = two_rows_wide(self, [a, b], x);
        let lower = two_rows_wide(self, [c, d], x);
        std::array::from_fn(|row| [upper[0][row], upper[1][row], lower[0][row], lower[1][row]])
    }
}

fearless_simd::kernel!(
    #[inline]
    fn four_rows(avx2: Avx2, weights: [&[u8]; 4], ahead: [&[u8]; 4], x: &[i8]) -> [i32; 4] {
        let low_bits = _mm256_set1_epi8(0b11);
        let ones = _mm256_set1_epi16(1);
        let weights = weights.map(|row| &row[..x.len() / 4]);
        let mut sums = [_mm256_setzero_si256(); 4];
        for (run, x) in x.chunks(BLOCKS * BLOCK_COLUMNS).enumerate() {
            let mut run_sums = [_mm256_setzero_si256(); 4];
            for (block, x) in x.chunks_exact(BLOCK_COLUMNS).enumerate() {
                prefetch_blocks(ahead, run * BLOCKS + block);
                let at = (run * BLOCKS + block) * BLOCK_BYTES;
                let x: [__m256i; 4] = std::array::from_fn(|plane| {
                    i8x32::from_slice(avx2, &x[plane * PLANE_COLUMNS..][..PLANE_COLUMNS]).into()
                });
                for (sum, row) in run_sums.iter_mut().zip(&weights) {
                    let packed: __m256i = u8x32::from_slice(avx2, &row[at..][..BLOCK_BYTES]).into();
                    let planes = [
                        packed,
                        _mm256_srli_epi16::<2>(packed),
                        _mm256_srli_epi16::<4>(packed),
                        _mm256_srli_epi16::<6>(packed),
                    ];
                    for (plane, x) in planes.into_iter().zip(x) {
                        let codes = _mm256_and_si256(plane, low_bits);
                        *sum = _mm256_add_epi16(*sum, _mm256_maddubs_epi16(codes, x));
                    }
                }
            }
            for (sum, run_sum) in sums.iter_mut().zip(run_sums) {
                *sum = _mm256_add_epi32(*sum, _mm256_madd_epi16(run_sum, ones));
            }
        }
        add_lanes(avx2, sums)
    }
);

fearless_simd::kernel!(
    #[inline]
    fn two_rows_wide(avx2: Avx2, weights: [&[u8]; 2], x: [&[i8]; 4]) -> [[i32; 4]; 2] {
        let low_bits = _mm256_set1_epi8(0b11);
        let ones = _mm256_set1_epi16(1);
        let columns = x[0].len();
        let x = x.map(|x| &x[..columns]);
        let weights = weights.map(|row| &row[..columns / 4]);
        let blocks = columns / BLOCK_COLUMNS;
        let mut sums = [[_mm256_setzero_si256(); 4]; 2];
        for run in (0..blocks).step_by(BLOCKS) {
            let mut run_sums = [[_mm256_setzero_si256(); 4]; 2];
            for block in run..blocks.min(run + BLOCKS) {
                let mut packed: [__m256i; 2] = weights.map(|row| {
                    u8x32::from_slice(avx2, &row[block * BLOCK_BYTES..][..BLOCK_BYTES]).into()
                });
                for plane in 0..4 {
                    let at = block * BLOCK_COLUMNS + plane * PLANE_COLUMNS;
                    let codes = packed.map(|row| _mm256_and_si256(row, low_bits));
                    packed = packed.map(|row| _mm256_srli_epi16::<2>(row));
                    for (column, x) in x.iter().enumerate() {
                        let x: __m256i = i8x32::from_slice(avx2, &x[at..][..PLANE_COLUMNS]).into();
                        for (sums, codes) in run_sums.iter_mut().zip(codes) {
                            let products = _mm256_maddubs_epi16(codes, x);
                            sums[column] = _mm256_add_epi16(sums[column], products);
                        }
                    }
                }
            }
            for (sums, run_sums) in sums.iter_mut().zip(run_sums) {
                for (sum, run_sum) in sums.iter_mut().zip(run_sums) {
                    *sum = _mm256_add_epi32(*sum, _mm256_madd_epi16(run_sum, ones));
                }
            }
        }
        sums.map(|sums| add_lanes(avx2, sums))
    }
);

fearless_simd::kernel!(
    /// The sum of the lanes of each of four vectors, by a transposing fold.
    #[inline]
    pub(crate) fn add_lanes(avx2: Avx2, sums: [__m256i; 4]) -> [i32; 4] {
        let [a, b, c, d] = sums;
        let pairs = _mm256_hadd_epi32(_mm256_hadd_epi32(a, b), _mm256_hadd_epi32(c, d));
        let folded: __m128i =
            _mm_add_epi32(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256::<1>(pairs));
        i32x4::simd_from(avx2, folded).into()
    }
);
