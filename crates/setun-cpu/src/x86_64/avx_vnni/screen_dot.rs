//! AVX-VNNI twin of [`setun_ops::screen_dot`].
//!
//! `vpdpbusd` multiplies 32 codes with a plane and adds four neighbours to 32 bits.

#![expect(unsafe_code, reason = "functions for a feature that no token of a dependency proves")]

use std::arch::x86_64::{__m256i, _mm256_dpbusd_avx_epi32, _mm256_setzero_si256};

use fearless_simd::{i8x32, prelude::*, u8x32, x86::Avx2};
use setun_ops::screen_dot::SCREEN_COLUMNS;

use super::AvxVnni;
use crate::x86_64::avx2::ternary_dot::add_lanes;
use crate::{
    screen_dot::{ScreenDot, TILE_TOKENS},
    x86_64::prefetch_part,
};

impl ScreenDot for AvxVnni {
    fn screen_dots(
        self,
        codes: [&[u8]; TILE_TOKENS],
        ahead: &[u8],
        planes: [&[i8]; 2],
    ) -> [[i32; 2]; TILE_TOKENS] {
        // SAFETY: `self` exists only where the feature was detected.
        let [high, low] = unsafe { four_rows(self.0, codes, ahead, planes) };
        std::array::from_fn(|row| [high[row], low[row]])
    }
}

#[target_feature(enable = "avxvnni")]
fn four_rows(avx2: Avx2, codes: [&[u8]; 4], ahead: &[u8], planes: [&[i8]; 2]) -> [[i32; 4]; 2] {
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
                sums[row] = _mm256_dpbusd_avx_epi32(sums[row], codes, plane);
            }
        }
    }
    sums.map(|sums| add_lanes(avx2, sums))
}
