//! AVX-512 twin of [`setun_ops::screen_dot`].
//!
//! `vpdpbusd` multiplies 64 codes with a plane and adds four neighbours to 32 bits.

use std::arch::x86_64::{
    __m256i, __m512i, _mm512_dpbusd_epi32, _mm512_setzero_si512, _mm512_zextsi256_si512,
};

use fearless_simd::{i8x32, i8x64, prelude::*, u8x32, u8x64, x86::Avx512};
use setun_ops::screen_dot::SCREEN_COLUMNS;

use super::ternary_dot::add_lanes;
use crate::{
    screen_dot::{ScreenDot, TILE_TOKENS},
    x86_64::prefetch_part,
};

/// Columns of a vector.
const VECTOR: usize = 2 * SCREEN_COLUMNS;

impl ScreenDot for Avx512 {
    fn screen_dots(
        self,
        codes: [&[u8]; TILE_TOKENS],
        ahead: &[u8],
        planes: [&[i8]; 2],
    ) -> [[i32; 2]; TILE_TOKENS] {
        let [high, low] = four_rows(self, codes, ahead, planes);
        std::array::from_fn(|row| [high[row], low[row]])
    }
}

fearless_simd::kernel!(
    #[inline]
    fn four_rows(
        avx512: Avx512,
        codes: [&[u8]; 4],
        ahead: &[u8],
        planes: [&[i8]; 2],
    ) -> [[i32; 4]; 2] {
        let columns = planes[0].len();
        let planes = planes.map(|plane| &plane[..columns]);
        let codes = codes.map(|row| &row[..columns]);
        let mut sums = [[_mm512_setzero_si512(); 4]; 2];
        for at in (0..columns).step_by(VECTOR) {
            prefetch_part::<{ TILE_TOKENS * VECTOR }>(ahead, at / VECTOR);
            let planes = planes.map(|plane| plane_at(avx512, plane, at));
            for (row, codes) in codes.iter().enumerate() {
                let codes = codes_at(avx512, codes, at);
                for (sums, plane) in sums.iter_mut().zip(planes) {
                    sums[row] = _mm512_dpbusd_epi32(sums[row], codes, plane);
                }
            }
        }
        sums.map(|sums| add_lanes(avx512, sums))
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
