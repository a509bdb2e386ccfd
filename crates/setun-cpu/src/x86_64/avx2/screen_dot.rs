//! AVX2 twin of [`setun_ops::screen_dot`].
//!
//! `vpmaddubsw` multiplies 32 codes with a plane and adds pairs in 16 bits, where it saturates: a
//! pair is at most `2 × 127 × 128 = 32,512`, so it never does, and is widened at once.

use std::arch::x86_64::{
    __m256i, _mm256_add_epi32, _mm256_madd_epi16, _mm256_maddubs_epi16, _mm256_set1_epi16,
    _mm256_setzero_si256,
};

use fearless_simd::{i8x32, prelude::*, u8x32, x86::Avx2};
use setun_ops::screen_dot::SCREEN_COLUMNS;

use super::ternary_dot::add_lanes;
use crate::screen_dot::{Dots, ScreenDot, TILE_TOKENS};

impl ScreenDot for Avx2 {
    fn screen_dots(self, codes: [&[u8]; TILE_TOKENS], planes: [&[i8]; 2]) -> Dots {
        four_rows(self, codes, planes)
    }
}

fearless_simd::kernel!(
    #[inline]
    fn four_rows(avx2: Avx2, codes: [&[u8]; 4], planes: [&[i8]; 2]) -> [[i32; 4]; 2] {
        let [a, b, c, d] = codes;
        let [a_high, a_low] = row(avx2, a, planes);
        let [b_high, b_low] = row(avx2, b, planes);
        let [c_high, c_low] = row(avx2, c, planes);
        let [d_high, d_low] = row(avx2, d, planes);
        let high = add_lanes(avx2, [a_high, b_high, c_high, d_high]);
        [high, add_lanes(avx2, [a_low, b_low, c_low, d_low])]
    }
);

fearless_simd::kernel!(
    /// The sums of one row with both planes.
    #[inline]
    fn row(avx2: Avx2, codes: &[u8], planes: [&[i8]; 2]) -> [__m256i; 2] {
        let ones = _mm256_set1_epi16(1);
        let [mut high_sum, mut low_sum] = [_mm256_setzero_si256(); 2];
        let (high, low) = (planes[0].as_chunks::<SCREEN_COLUMNS>().0, planes[1].as_chunks().0);
        for ((codes, high), low) in codes.as_chunks().0.iter().zip(high).zip(low) {
            let codes: __m256i = u8x32::simd_from(avx2, *codes).into();
            let high = _mm256_maddubs_epi16(codes, i8x32::simd_from(avx2, *high).into());
            let low = _mm256_maddubs_epi16(codes, i8x32::simd_from(avx2, *low).into());
            high_sum = _mm256_add_epi32(high_sum, _mm256_madd_epi16(high, ones));
            low_sum = _mm256_add_epi32(low_sum, _mm256_madd_epi16(low, ones));
        }
        [high_sum, low_sum]
    }
);
