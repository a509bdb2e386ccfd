//! AVX-VNNI twin of [`setun_ops::screen_dot`].
//!
//! `vpdpbusd` multiplies 32 codes with a plane and adds four neighbours to 32 bits.

#![expect(unsafe_code, reason = "functions for a feature that no token of a dependency proves")]

use std::arch::x86_64::{__m256i, _mm256_dpbusd_avx_epi32, _mm256_setzero_si256};

use fearless_simd::{i8x32, prelude::*, u8x32, x86::Avx2};
use setun_ops::screen_dot::SCREEN_COLUMNS;

use super::AvxVnni;
use crate::screen_dot::{Dots, ScreenDot, TILE_TOKENS};
use crate::x86_64::avx2::ternary_dot::add_lanes;

impl ScreenDot for AvxVnni {
    fn screen_dots(self, codes: [&[u8]; TILE_TOKENS], planes: [&[i8]; 2]) -> Dots {
        // SAFETY: `self` exists only where the feature was detected.
        unsafe { four_rows(self.0, codes, planes) }
    }
}

#[target_feature(enable = "avxvnni")]
fn four_rows(avx2: Avx2, codes: [&[u8]; 4], planes: [&[i8]; 2]) -> [[i32; 4]; 2] {
    let [a, b, c, d] = codes;
    let [a_high, a_low] = row(avx2, a, planes);
    let [b_high, b_low] = row(avx2, b, planes);
    let [c_high, c_low] = row(avx2, c, planes);
    let [d_high, d_low] = row(avx2, d, planes);
    let high = add_lanes(avx2, [a_high, b_high, c_high, d_high]);
    [high, add_lanes(avx2, [a_low, b_low, c_low, d_low])]
}

/// The sums of one row with both planes.
#[target_feature(enable = "avxvnni")]
#[inline]
fn row(avx2: Avx2, codes: &[u8], planes: [&[i8]; 2]) -> [__m256i; 2] {
    let [mut high_sum, mut low_sum] = [_mm256_setzero_si256(); 2];
    let (high, low) = (planes[0].as_chunks::<SCREEN_COLUMNS>().0, planes[1].as_chunks().0);
    for ((codes, high), low) in codes.as_chunks().0.iter().zip(high).zip(low) {
        let codes: __m256i = u8x32::simd_from(avx2, *codes).into();
        high_sum = _mm256_dpbusd_avx_epi32(high_sum, codes, i8x32::simd_from(avx2, *high).into());
        low_sum = _mm256_dpbusd_avx_epi32(low_sum, codes, i8x32::simd_from(avx2, *low).into());
    }
    [high_sum, low_sum]
}
