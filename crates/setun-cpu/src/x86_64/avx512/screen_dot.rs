//! AVX-512 twin of [`setun_ops::screen_dot`].
//!
//! `vpdpbusd` multiplies 64 codes with a plane and adds four neighbours to 32 bits.

use std::arch::x86_64::{
    __m256i, __m512i, _mm512_add_epi32, _mm512_dpbusd_epi32, _mm512_setzero_si512,
    _mm512_zextsi256_si512,
};

use fearless_simd::{i8x32, i8x64, prelude::*, u8x32, u8x64, x86::Avx512};
use setun_ops::screen_dot::SCREEN_COLUMNS;

use super::ternary_dot::add_lanes;
use crate::screen_dot::{ScreenDot, TILE_TOKENS};

/// Columns of a vector.
const VECTOR: usize = 2 * SCREEN_COLUMNS;

impl ScreenDot for Avx512 {
    fn screen_dots(
        self,
        codes: [&[u8]; TILE_TOKENS],
        planes: [&[i8]; 2],
    ) -> [[i32; 2]; TILE_TOKENS] {
        let [high, low] = four_rows(self, codes, planes);
        std::array::from_fn(|row| [high[row], low[row]])
    }
}

fearless_simd::kernel!(
    #[inline]
    fn four_rows(avx512: Avx512, codes: [&[u8]; 4], planes: [&[i8]; 2]) -> [[i32; 4]; 2] {
        let [a, b, c, d] = codes;
        let [a_high, a_low] = row(avx512, a, planes);
        let [b_high, b_low] = row(avx512, b, planes);
        let [c_high, c_low] = row(avx512, c, planes);
        let [d_high, d_low] = row(avx512, d, planes);
        let high = add_lanes(avx512, [a_high, b_high, c_high, d_high]);
        [high, add_lanes(avx512, [a_low, b_low, c_low, d_low])]
    }
);

fearless_simd::kernel!(
    /// The sums of one row with both planes.
    #[inline]
    fn row(avx512: Avx512, codes: &[u8], planes: [&[i8]; 2]) -> [__m512i; 2] {
        let (pairs, rest) = codes.as_chunks::<{ 2 * VECTOR }>();
        let [high, low] = planes;
        // Two sums each, as one would wait for its own last addition.
        let [mut high_even, mut high_odd, mut low_even, mut low_odd] = [_mm512_setzero_si512(); 4];
        let (high_pairs, low_pairs) = (high.as_chunks::<{ 2 * VECTOR }>().0, low.as_chunks().0);
        for ((codes, high), low) in pairs.iter().zip(high_pairs).zip(low_pairs) {
            let low: &[i8; 2 * VECTOR] = low;
            let (even, odd) = (codes_at(avx512, codes, 0), codes_at(avx512, codes, VECTOR));
            high_even = _mm512_dpbusd_epi32(high_even, even, plane_at(avx512, high, 0));
            low_even = _mm512_dpbusd_epi32(low_even, even, plane_at(avx512, low, 0));
            high_odd = _mm512_dpbusd_epi32(high_odd, odd, plane_at(avx512, high, VECTOR));
            low_odd = _mm512_dpbusd_epi32(low_odd, odd, plane_at(avx512, low, VECTOR));
        }
        let done = codes.len() - rest.len();
        for at in (done..codes.len()).step_by(VECTOR) {
            let codes = codes_at(avx512, codes, at);
            high_even = _mm512_dpbusd_epi32(high_even, codes, plane_at(avx512, high, at));
            low_even = _mm512_dpbusd_epi32(low_even, codes, plane_at(avx512, low, at));
        }
        [_mm512_add_epi32(high_even, high_odd), _mm512_add_epi32(low_even, low_odd)]
    }
);

fearless_simd::kernel!(
    /// 64 codes from a place on, the last 32 zero where there are no more.
    #[inline]
    fn codes_at(avx512: Avx512, codes: &[u8], at: usize) -> __m512i {
        if let Some(whole) = codes.get(at..at + VECTOR) {
            return u8x64::from_slice(avx512, whole).into();
        }
        let half: __m256i = u8x32::from_slice(avx512, &codes[at..][..SCREEN_COLUMNS]).into();
        _mm512_zextsi256_si512(half)
    }
);

fearless_simd::kernel!(
    /// 64 values of a plane likewise.
    #[inline]
    fn plane_at(avx512: Avx512, plane: &[i8], at: usize) -> __m512i {
        if let Some(whole) = plane.get(at..at + VECTOR) {
            return i8x64::from_slice(avx512, whole).into();
        }
        let half: __m256i = i8x32::from_slice(avx512, &plane[at..][..SCREEN_COLUMNS]).into();
        _mm512_zextsi256_si512(half)
    }
);
