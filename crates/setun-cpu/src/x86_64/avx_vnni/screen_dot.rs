//! AVX-VNNI twin of [`setun_ops::screen_dot`].
//!
//! `vpdpbusd` multiplies 32 codes with a plane and adds four neighbours to 32 bits. Two rows of
//! codes meet up to three hidden rows: twelve sums stay in registers, beside two vectors of codes
//! and one of a plane.

#![expect(unsafe_code, reason = "functions for a feature that no token of a dependency proves")]

use std::arch::x86_64::{__m256i, _mm256_dpbusd_avx_epi32, _mm256_setzero_si256};

use fearless_simd::{i8x32, prelude::*, u8x32, x86::Avx2};
use setun_ops::screen_dot::SCREEN_COLUMNS;

use super::AvxVnni;
use crate::{
    screen_dot::{Dots, MOST_TILE_HIDDEN, ScreenDot, TILE_TOKENS},
    x86_64::{Ahead, avx2::ternary_dot::add_lanes},
};

impl ScreenDot for AvxVnni {
    const TILE_HIDDEN: usize = MOST_TILE_HIDDEN;

    fn screen_dots(self, codes: [&[u8]; TILE_TOKENS], planes: [&[i8]; 2]) -> Dots {
        // SAFETY: `self` exists only where the feature was detected.
        unsafe { four_rows(self.0, codes, planes) }
    }

    fn screen_dots_wide(
        self,
        codes: [&[u8]; TILE_TOKENS],
        ahead: &[u8],
        planes: &[[&[i8]; 2]],
        dots: &mut [Dots],
    ) {
        // SAFETY: as above.
        unsafe {
            match *planes {
                [] => {}
                [a] => dots[0] = four_rows(self.0, codes, a),
                [a, b] => with_hidden(self.0, codes, ahead, [a, b], dots),
                [a, b, c, ..] => with_hidden(self.0, codes, ahead, [a, b, c], dots),
            }
        }
    }
}

#[target_feature(enable = "avxvnni")]
fn with_hidden<const HIDDEN: usize>(
    avx2: Avx2,
    codes: [&[u8]; 4],
    ahead: &[u8],
    planes: [[&[i8]; 2]; HIDDEN],
    dots: &mut [Dots],
) {
    let [a, b, c, d] = codes;
    let (ahead, ahead_next) = ahead.split_at(ahead.len() / 2);
    let first = pair(avx2, [a, b], ahead, planes);
    let second = pair(avx2, [c, d], ahead_next, planes);
    for (dots, (first, second)) in dots.iter_mut().zip(first.into_iter().zip(second)) {
        for (dots, ([a, b], [c, d])) in dots.iter_mut().zip(first.into_iter().zip(second)) {
            *dots = add_lanes(avx2, [a, b, c, d]);
        }
    }
}

/// The sums of two rows, as `[hidden row][plane][row]`.
#[target_feature(enable = "avxvnni")]
#[inline]
fn pair<const HIDDEN: usize>(
    avx2: Avx2,
    codes: [&[u8]; 2],
    ahead: &[u8],
    planes: [[&[i8]; 2]; HIDDEN],
) -> [[[__m256i; 2]; 2]; HIDDEN] {
    let steps = codes[0].len() / SCREEN_COLUMNS;
    let mut ahead = Ahead::new(ahead, steps);
    let (a, b) = (&codes[0].as_chunks().0[..steps], &codes[1].as_chunks().0[..steps]);
    // Not by `map`, whose closure would be called, and the lengths be forgotten.
    let mut x: [[&[[i8; SCREEN_COLUMNS]]; 2]; HIDDEN] = [[&[]; 2]; HIDDEN];
    for hidden in 0..HIDDEN {
        for plane in 0..2 {
            x[hidden][plane] = &planes[hidden][plane].as_chunks().0[..steps];
        }
    }
    let mut sums = [[[_mm256_setzero_si256(); 2]; 2]; HIDDEN];
    for step in 0..steps {
        ahead.prefetch();
        let a: __m256i = u8x32::simd_from(avx2, a[step]).into();
        let b: __m256i = u8x32::simd_from(avx2, b[step]).into();
        for hidden in 0..HIDDEN {
            for plane in 0..2 {
                let x: __m256i = i8x32::simd_from(avx2, x[hidden][plane][step]).into();
                let [a_sum, b_sum] = sums[hidden][plane];
                sums[hidden][plane] =
                    [_mm256_dpbusd_avx_epi32(a_sum, a, x), _mm256_dpbusd_avx_epi32(b_sum, b, x)];
            }
        }
    }
    sums
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
