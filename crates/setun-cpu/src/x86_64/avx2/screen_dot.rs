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
use crate::{
    screen_dot::{ScreenDot, TILE_TOKENS},
    x86_64::prefetch_part,
};

impl ScreenDot for Avx2 {
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
    fn four_rows(avx2: Avx2, codes: [&[u8]; 4], ahead: &[u8], planes: [&[i8]; 2]) -> [[i32; 4]; 2] {
        let ones = _mm256_set1_epi16(1);
        let columns = planes[0].len();
        let planes = planes.map(|plane| &plane[..columns]);
        let codes = codes.map(|row| &row[..columns]);
        let mut sums = [[_mm256_setzero_si256(); 4]; 2];
        for at in (0..columns).step_by(SCREEN_COLUMNS) {
            prefetch_part::<{ TILE_TOKENS * SCREEN_COLUMNS }>(ahead, at / SCREEN_COLUMNS);
            let planes: [__m256i; 2] =
                planes.map(|plane| i8x32::from_slice(avx2, &plane[at..][..SCREEN_COLUMNS]).into());
            for (row, codes) in codes.iter().enumerate() {
                let codes: __m256i = u8x32::from_slice(avx2, &codes[at..][..SCREEN_COLUMNS]).into();
                for (sums, plane) in sums.iter_mut().zip(planes) {
                    let pairs = _mm256_maddubs_epi16(codes, plane);
                    sums[row] = _mm256_add_epi32(sums[row], _mm256_madd_epi16(pairs, ones));
                }
            }
        }
        sums.map(|sums| add_lanes(avx2, sums))
    }
);
