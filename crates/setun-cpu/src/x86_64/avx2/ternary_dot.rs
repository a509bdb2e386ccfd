//! AVX2 version of [`setun_ops::ternary_dot()`].
//!
//! A load brings 128 codes of a row. `vpmaddubsw` multiplies them with activations and adds pairs
//! in 16 bits, where it saturates: a pair lies within `−2 × 2 × 128` and `2 × 2 × 127`.
//! For one row of activations, two planes are masked where they are and the two others after one
//! shift. Products of the upper ones are 4 times too large, and their sums are kept apart. Sums
//! are widened every [`BLOCKS`] blocks, whose `8 × 2` pairs just lie within 16 bits, and those of
//! the upper planes are divided exactly.

use std::arch::x86_64::{
    __m128i, __m256i, _mm_add_epi32, _mm256_add_epi16, _mm256_add_epi32, _mm256_and_si256,
    _mm256_castsi256_si128, _mm256_extracti128_si256, _mm256_hadd_epi32, _mm256_madd_epi16,
    _mm256_maddubs_epi16, _mm256_set1_epi8, _mm256_set1_epi16, _mm256_setzero_si256,
    _mm256_srai_epi16, _mm256_srli_epi16,
};

use fearless_simd::{i8x32, i32x4, prelude::*, u8x32, x86::Avx2};
use setun_ops::ternary::{BLOCK_COLUMNS, PLANE_COLUMNS};

use super::run_dots::run_dots;
use crate::{
    ternary_dot::{
        ActivationBlock, CodeBlock, CodeDots, CodeRows, TernaryDot, WideDots, WideRows,
        activation_blocks, code_blocks,
    },
    x86_64::{prefetch::tiles_ahead, prefetch_blocks},
};

/// Blocks whose 16-bit sums cannot overflow: those of the upper planes are at most
/// `8 × 2 × 4 × 512 = 32,768` below zero, and `8 × 2 × 4 × 508` above.
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

    fn tiles_ahead(self) -> usize {
        tiles_ahead()
    }

    fn code_dots(self, weights: CodeRows<'_>, ahead: CodeRows<'_>, x: &[i8]) -> CodeDots {
        four_rows(self, weights, ahead, x)
    }

    fn run_dots(
        self,
        weights: CodeRows<'_>,
        ahead: CodeRows<'_>,
        x: &[i8],
        run: usize,
        dots: &mut [CodeDots],
    ) {
        run_dots(self, weights, ahead, x, run, dots);
    }

    fn code_dots_wide(
        self,
        [a, b, c, d]: CodeRows<'_>,
        [a_ahead, b_ahead, c_ahead, d_ahead]: CodeRows<'_>,
        x: WideRows<'_>,
    ) -> WideDots {
        // Two rows at a time: sixteen sums would not leave a register for the codes.
        let upper = two_rows_wide(self, [a, b], [a_ahead, b_ahead], x);
        let lower = two_rows_wide(self, [c, d], [c_ahead, d_ahead], x);
        std::array::from_fn(|row| [upper[0][row], upper[1][row], lower[0][row], lower[1][row]])
    }
}

fearless_simd::kernel!(
    #[inline]
    fn four_rows(avx2: Avx2, weights: [&[u8]; 4], ahead: [&[u8]; 4], x: &[i8]) -> [i32; 4] {
        let (x, _) = x.as_chunks();
        let weights = code_blocks(weights, x.len());
        let mut sums = [_mm256_setzero_si256(); 4];
        for run in (0..x.len()).step_by(BLOCKS) {
            let [mut a, mut b, mut c, mut d] = [[_mm256_setzero_si256(); 2]; 4];
            for block in run..x.len().min(run + BLOCKS) {
                prefetch_blocks(ahead, block);
                let x = &x[block];
                a = add_planes(avx2, a, &weights[0][block], x);
                b = add_planes(avx2, b, &weights[1][block], x);
                c = add_planes(avx2, c, &weights[2][block], x);
                d = add_planes(avx2, d, &weights[3][block], x);
            }
            sums = [
                _mm256_add_epi32(sums[0], widened(avx2, a)),
                _mm256_add_epi32(sums[1], widened(avx2, b)),
                _mm256_add_epi32(sums[2], widened(avx2, c)),
                _mm256_add_epi32(sums[3], widened(avx2, d)),
            ];
        }
        add_lanes(avx2, sums)
    }
);

fearless_simd::kernel!(
    /// Adds the products of a block of a row to its 16-bit sums, which are 1 and 4 times too large.
    #[inline]
    fn add_planes(
        avx2: Avx2,
        sums: [__m256i; 2],
        codes: &CodeBlock,
        x: &ActivationBlock,
    ) -> [__m256i; 2] {
        let masks = [_mm256_set1_epi8(0x03), _mm256_set1_epi8(0x0c)];
        let packed: __m256i = u8x32::from_slice(avx2, codes).into();
        let shifted = _mm256_srli_epi16::<4>(packed);
        let product = |codes: __m256i, mask: usize, plane: usize| {
            _mm256_maddubs_epi16(_mm256_and_si256(codes, masks[mask]), activations(avx2, x, plane))
        };
        let by_1 = _mm256_add_epi16(sums[0], product(packed, 0, 0));
        let by_4 = _mm256_add_epi16(sums[1], product(packed, 1, 1));
        [
            _mm256_add_epi16(by_1, product(shifted, 0, 2)),
            _mm256_add_epi16(by_4, product(shifted, 1, 3)),
        ]
    }
);

fearless_simd::kernel!(
    /// A row's sum in 32 bits from those of its planes, which are 1 and 4 times too large.
    #[inline]
    fn widened(_avx2: Avx2, sums: [__m256i; 2]) -> __m256i {
        let [by_1, by_4] = sums;
        let sums = _mm256_add_epi16(by_1, _mm256_srai_epi16::<2>(by_4));
        _mm256_madd_epi16(sums, _mm256_set1_epi16(1))
    }
);

fearless_simd::kernel!(
    #[inline]
    fn two_rows_wide(
        avx2: Avx2,
        weights: [&[u8]; 2],
        ahead: [&[u8]; 2],
        x: [&[i8]; 4],
    ) -> [[i32; 4]; 2] {
        let low_bits = _mm256_set1_epi8(0b11);
        let blocks = x[0].len() / BLOCK_COLUMNS;
        let x = activation_blocks(x, blocks);
        let weights = code_blocks(weights, blocks);
        let [mut upper, mut lower] = [[_mm256_setzero_si256(); 4]; 2]; // a row of weights each
        for run in (0..blocks).step_by(BLOCKS) {
            let [mut a, mut b] = [[_mm256_setzero_si256(); 4]; 2];
            for block in run..blocks.min(run + BLOCKS) {
                prefetch_blocks(ahead, block);
                let mut packed: [__m256i; 2] = [
                    u8x32::from_slice(avx2, &weights[0][block]).into(),
                    u8x32::from_slice(avx2, &weights[1][block]).into(),
                ];
                for plane in 0..4 {
                    let x = [
                        activations(avx2, &x[0][block], plane),
                        activations(avx2, &x[1][block], plane),
                        activations(avx2, &x[2][block], plane),
                        activations(avx2, &x[3][block], plane),
                    ];
                    a = add_columns(avx2, a, _mm256_and_si256(packed[0], low_bits), x);
                    b = add_columns(avx2, b, _mm256_and_si256(packed[1], low_bits), x);
                    packed = [_mm256_srli_epi16::<2>(packed[0]), _mm256_srli_epi16::<2>(packed[1])];
                }
            }
            upper = add_widened(avx2, upper, a);
            lower = add_widened(avx2, lower, b);
        }
        [add_lanes(avx2, upper), add_lanes(avx2, lower)]
    }
);

fearless_simd::kernel!(
    /// Adds the products of a plane of a row with four rows of activations.
    #[inline]
    fn add_columns(
        _avx2: Avx2,
        sums: [__m256i; 4],
        codes: __m256i,
        x: [__m256i; 4],
    ) -> [__m256i; 4] {
        [
            _mm256_add_epi16(sums[0], _mm256_maddubs_epi16(codes, x[0])),
            _mm256_add_epi16(sums[1], _mm256_maddubs_epi16(codes, x[1])),
            _mm256_add_epi16(sums[2], _mm256_maddubs_epi16(codes, x[2])),
            _mm256_add_epi16(sums[3], _mm256_maddubs_epi16(codes, x[3])),
        ]
    }
);

fearless_simd::kernel!(
    #[inline]
    fn add_widened(_avx2: Avx2, sums: [__m256i; 4], run: [__m256i; 4]) -> [__m256i; 4] {
        let ones = _mm256_set1_epi16(1);
        [
            _mm256_add_epi32(sums[0], _mm256_madd_epi16(run[0], ones)),
            _mm256_add_epi32(sums[1], _mm256_madd_epi16(run[1], ones)),
            _mm256_add_epi32(sums[2], _mm256_madd_epi16(run[2], ones)),
            _mm256_add_epi32(sums[3], _mm256_madd_epi16(run[3], ones)),
        ]
    }
);

fearless_simd::kernel!(
    /// The activations of a plane.
    #[inline]
    fn activations(avx2: Avx2, block: &ActivationBlock, plane: usize) -> __m256i {
        i8x32::from_slice(avx2, &block.as_chunks::<PLANE_COLUMNS>().0[plane]).into()
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
