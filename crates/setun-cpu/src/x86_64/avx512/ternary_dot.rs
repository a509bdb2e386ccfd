//! AVX-512 version of [`setun_ops::ternary_dot()`].
//!
//! A load brings two blocks, 256 codes of a row. `vpdpbusd` multiplies unsigned with signed bytes
//! and adds four neighbours to 32 bits, which cannot overflow: at most `132,000 / 16 × 128 × 128`
//! lands in a lane. For one row of activations the codes are masked in place and never shifted:
//! products of the planes are then 1, 4, 16 and 64 times too large, and their sums, kept apart,
//! are divided exactly at the end. With four rows of activations, sixteen sums a plane would not fit
//! the registers: codes are shifted, once for all four.

use std::arch::x86_64::{
    __m128i, __m512i, _mm_add_epi32, _mm256_add_epi32, _mm256_castsi256_si128,
    _mm256_extracti128_si256, _mm256_hadd_epi32, _mm256_set1_epi16, _mm512_add_epi32,
    _mm512_and_si512, _mm512_broadcast_i64x4, _mm512_castsi256_si512, _mm512_castsi512_si256,
    _mm512_dpbusd_epi32, _mm512_extracti64x4_epi64, _mm512_inserti64x4, _mm512_set1_epi8,
    _mm512_setzero_si512, _mm512_srai_epi32, _mm512_srlv_epi16,
};

use fearless_simd::{i8x64, i32x4, prelude::*, u8x32, u8x64, x86::Avx512};
use setun_ops::ternary::{BLOCK_COLUMNS, PLANE_COLUMNS};

use super::{
    blocks::{PAIR_BYTES, codes, planes},
    run_dots::run_dots,
};
use crate::{
    ternary_dot::{ActivationBlock, CodeBlock, CodeDots, CodeRows, TernaryDot, WideDots, WideRows},
    x86_64::{prefetch::tiles_ahead, prefetch_blocks},
};

impl TernaryDot for Avx512 {
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
        weights: CodeRows<'_>,
        ahead: CodeRows<'_>,
        x: WideRows<'_>,
    ) -> WideDots {
        four_rows_wide(self, weights, ahead, x)
    }
}

fearless_simd::kernel!(
    #[inline]
    fn four_rows(avx512: Avx512, weights: [&[u8]; 4], ahead: [&[u8]; 4], x: &[i8]) -> [i32; 4] {
        let (pairs, last) = x.as_chunks::<{ 2 * BLOCK_COLUMNS }>();
        let [row_a, row_b, row_c, row_d] = weights;
        // Each row's sums have variables of their own: as arrays in an array they would lie in
        // memory.
        let [mut a, mut b, mut c, mut d] = [[_mm512_setzero_si512(); 4]; 4];
        let mut rows: [&[[u8; PAIR_BYTES]]; 4] = [&[]; 4];
        for row in 0..4 {
            rows[row] = &weights[row].as_chunks().0[..pairs.len()];
        }
        for (pair, x) in pairs.iter().enumerate() {
            prefetch_blocks(ahead, 2 * pair);
            let x = planes(avx512, x);
            a = add_planes(avx512, a, u8x64::simd_from(avx512, rows[0][pair]).into(), x);
            b = add_planes(avx512, b, u8x64::simd_from(avx512, rows[1][pair]).into(), x);
            c = add_planes(avx512, c, u8x64::simd_from(avx512, rows[2][pair]).into(), x);
            d = add_planes(avx512, d, u8x64::simd_from(avx512, rows[3][pair]).into(), x);
        }
        if !last.is_empty() {
            let x = planes(avx512, last);
            a = add_planes(avx512, a, codes(avx512, row_a, pairs.len()), x);
            b = add_planes(avx512, b, codes(avx512, row_b, pairs.len()), x);
            c = add_planes(avx512, c, codes(avx512, row_c, pairs.len()), x);
            d = add_planes(avx512, d, codes(avx512, row_d, pairs.len()), x);
        }
        let [a, b, c, d] =
            [unscaled(avx512, a), unscaled(avx512, b), unscaled(avx512, c), unscaled(avx512, d)];
        add_lanes(avx512, [a, b, c, d])
    }
);

fearless_simd::kernel!(
    /// Adds the products of 256 codes of a row to its sums, which are 1, 4, 16 and 64 times too
    /// large.
    #[inline]
    fn add_planes(
        _avx512: Avx512,
        sums: [__m512i; 4],
        packed: __m512i,
        x: [__m512i; 4],
    ) -> [__m512i; 4] {
        let [by_1, by_4, by_16, by_64] = sums;
        let masked = |mask: u8| _mm512_and_si512(packed, _mm512_set1_epi8(mask.cast_signed()));
        [
            _mm512_dpbusd_epi32(by_1, masked(0x03), x[0]),
            _mm512_dpbusd_epi32(by_4, masked(0x0c), x[1]),
            _mm512_dpbusd_epi32(by_16, masked(0x30), x[2]),
            _mm512_dpbusd_epi32(by_64, masked(0xc0), x[3]),
        ]
    }
);

fearless_simd::kernel!(
    /// A row's sum from those of its planes.
    #[inline]
    fn unscaled(_avx512: Avx512, sums: [__m512i; 4]) -> __m512i {
        let [by_1, by_4, by_16, by_64] = sums;
        let low = _mm512_add_epi32(by_1, _mm512_srai_epi32::<2>(by_4));
        let high = _mm512_add_epi32(_mm512_srai_epi32::<4>(by_16), _mm512_srai_epi32::<6>(by_64));
        _mm512_add_epi32(low, high)
    }
);

fearless_simd::kernel!(
    /// A vector holds one block of a row twice, with one plane in its lower and the next in its
    /// upper half, so that activations of 64 neighbouring columns meet it as they lie.
    #[inline]
    fn four_rows_wide(
        avx512: Avx512,
        weights: [&[u8]; 4],
        ahead: [&[u8]; 4],
        x: [&[i8]; 4],
    ) -> [[i32; 4]; 4] {
        let blocks = x[0].len() / BLOCK_COLUMNS;
        let mut rows: [&[CodeBlock]; 4] = [&[]; 4];
        let mut columns: [&[ActivationBlock]; 4] = [&[]; 4];
        for row in 0..4 {
            rows[row] = &weights[row].as_chunks().0[..blocks];
            columns[row] = &x[row].as_chunks().0[..blocks];
        }
        let (shifts, low_bits) = (plane_shifts(avx512), _mm512_set1_epi8(0b11));
        let [mut a, mut b, mut c, mut d] = [[_mm512_setzero_si512(); 4]; 4]; // a row of x each
        for block in 0..blocks {
            prefetch_blocks(ahead, block);
            for (half, shift) in shifts.into_iter().enumerate() {
                let mut codes = [_mm512_setzero_si512(); 4];
                for row in 0..4 {
                    let packed = twice(avx512, &rows[row][block]);
                    let shifted = _mm512_srlv_epi16(packed, shift);
                    codes[row] = _mm512_and_si512(shifted, low_bits);
                }
                a = add_rows(avx512, a, codes, half_block(avx512, &columns[0][block], half));
                b = add_rows(avx512, b, codes, half_block(avx512, &columns[1][block], half));
                c = add_rows(avx512, c, codes, half_block(avx512, &columns[2][block], half));
                d = add_rows(avx512, d, codes, half_block(avx512, &columns[3][block], half));
            }
        }
        [add_lanes(avx512, a), add_lanes(avx512, b), add_lanes(avx512, c), add_lanes(avx512, d)]
    }
);

fearless_simd::kernel!(
    /// By how many bits the halves of a vector are shifted: for the first two planes and for the
    /// others.
    #[inline]
    fn plane_shifts(_avx512: Avx512) -> [__m512i; 2] {
        let halves = |low: i16, high: i16| {
            let low = _mm512_castsi256_si512(_mm256_set1_epi16(low));
            _mm512_inserti64x4::<1>(low, _mm256_set1_epi16(high))
        };
        [halves(0, 2), halves(4, 6)]
    }
);

fearless_simd::kernel!(
    /// The packed codes of a block in both halves.
    #[inline]
    fn twice(avx512: Avx512, block: &CodeBlock) -> __m512i {
        _mm512_broadcast_i64x4(u8x32::from_slice(avx512, block).into())
    }
);

fearless_simd::kernel!(
    /// The activations of two neighbouring planes of a block.
    #[inline]
    fn half_block(avx512: Avx512, block: &ActivationBlock, half: usize) -> __m512i {
        i8x64::from_slice(avx512, &block.as_chunks::<{ 2 * PLANE_COLUMNS }>().0[half]).into()
    }
);

fearless_simd::kernel!(
    /// Adds the products of four rows' codes with a row of activations.
    #[inline]
    fn add_rows(
        _avx512: Avx512,
        sums: [__m512i; 4],
        codes: [__m512i; 4],
        x: __m512i,
    ) -> [__m512i; 4] {
        let [a, b, c, d] = sums;
        [
            _mm512_dpbusd_epi32(a, codes[0], x),
            _mm512_dpbusd_epi32(b, codes[1], x),
            _mm512_dpbusd_epi32(c, codes[2], x),
            _mm512_dpbusd_epi32(d, codes[3], x),
        ]
    }
);

fearless_simd::kernel!(
    /// The sum of the lanes of each of four vectors, by a transposing fold.
    #[inline]
    pub(super) fn add_lanes(avx512: Avx512, sums: [__m512i; 4]) -> [i32; 4] {
        let [a, b, c, d] = sums.map(|sum| {
            _mm256_add_epi32(_mm512_castsi512_si256(sum), _mm512_extracti64x4_epi64::<1>(sum))
        });
        let pairs = _mm256_hadd_epi32(_mm256_hadd_epi32(a, b), _mm256_hadd_epi32(c, d));
        let folded: __m128i =
            _mm_add_epi32(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256::<1>(pairs));
        i32x4::simd_from(avx512, folded).into()
    }
);
