//! AVX2 twin of [`setun_ops::screen_dot`].
//!
//! `vpmaddubsw` multiplies 32 codes with a plane and adds pairs in 16 bits, where it saturates: a
//! pair is at most `2 × 127 × 128 = 32,512`, so it never does, and is widened at once. Two rows
//! of codes meet two hidden rows: eight sums stay in registers, beside two vectors of codes, one
//! of a plane, and what is not added yet. One hidden row meets four rows of codes.

use std::arch::x86_64::{
    __m256i, _mm256_add_epi32, _mm256_madd_epi16, _mm256_maddubs_epi16, _mm256_set1_epi16,
    _mm256_setzero_si256,
};

use fearless_simd::{i8x32, prelude::*, u8x32, x86::Avx2};
use setun_ops::screen_dot::SCREEN_COLUMNS;

use super::ternary_dot::add_lanes;
use crate::{
    screen_dot::{Dots, ScreenDot, TILE_TOKENS},
    x86_64::prefetch_blocks,
};

impl ScreenDot for Avx2 {
    const TILE_HIDDEN: usize = 2;

    fn screen_dots(
        self,
        codes: [&[u8]; TILE_TOKENS],
        ahead: [&[u8]; TILE_TOKENS],
        planes: &[[&[i8]; 2]],
        dots: &mut [Dots],
    ) {
        match *planes {
            [] => {}
            [a] => dots[0] = four_rows(self, codes, ahead, a),
            [a, b, ..] => with_two(self, codes, ahead, [a, b], dots),
        }
    }
}

fearless_simd::kernel!(
    #[inline]
    fn with_two(
        avx2: Avx2,
        codes: [&[u8]; 4],
        ahead: [&[u8]; 4],
        planes: [[&[i8]; 2]; 2],
        dots: &mut [Dots],
    ) {
        let first = pair(avx2, [codes[0], codes[1]], [ahead[0], ahead[1]], planes);
        let second = pair(avx2, [codes[2], codes[3]], [ahead[2], ahead[3]], planes);
        for (dots, (first, second)) in dots.iter_mut().zip(first.into_iter().zip(second)) {
            for (dots, ([a, b], [c, d])) in dots.iter_mut().zip(first.into_iter().zip(second)) {
                *dots = add_lanes(avx2, [a, b, c, d]);
            }
        }
    }
);

fearless_simd::kernel!(
    /// The sums of two rows, as `[hidden row][plane][row]`.
    #[inline]
    fn pair(
        avx2: Avx2,
        codes: [&[u8]; 2],
        ahead: [&[u8]; 2],
        planes: [[&[i8]; 2]; 2],
    ) -> [[[__m256i; 2]; 2]; 2] {
        let steps = codes[0].len() / SCREEN_COLUMNS;
        let (a, b) = (&codes[0].as_chunks().0[..steps], &codes[1].as_chunks().0[..steps]);
        // Not by `map`, whose closure would be called, and the lengths be forgotten.
        let mut x: [[&[[i8; SCREEN_COLUMNS]]; 2]; 2] = [[&[]; 2]; 2];
        for hidden in 0..2 {
            for plane in 0..2 {
                x[hidden][plane] = &planes[hidden][plane].as_chunks().0[..steps];
            }
        }
        let mut sums = [[[_mm256_setzero_si256(); 2]; 2]; 2];
        for step in 0..steps {
            prefetch_blocks(ahead, step);
            let a = u8x32::simd_from(avx2, a[step]).into();
            let b = u8x32::simd_from(avx2, b[step]).into();
            for hidden in 0..2 {
                for plane in 0..2 {
                    let x = i8x32::simd_from(avx2, x[hidden][plane][step]).into();
                    let [a_sum, b_sum] = sums[hidden][plane];
                    sums[hidden][plane] = [add(avx2, a_sum, a, x), add(avx2, b_sum, b, x)];
                }
            }
        }
        sums
    }
);

fearless_simd::kernel!(
    /// Adds the products of 32 codes with a plane to eight lanes.
    #[inline]
    fn add(_avx2: Avx2, sum: __m256i, codes: __m256i, x: __m256i) -> __m256i {
        let pairs = _mm256_maddubs_epi16(codes, x);
        _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)))
    }
);

fearless_simd::kernel!(
    #[inline]
    fn four_rows(
        avx2: Avx2,
        codes: [&[u8]; 4],
        ahead: [&[u8]; 4],
        planes: [&[i8]; 2],
    ) -> [[i32; 4]; 2] {
        let steps = codes[0].len() / SCREEN_COLUMNS;
        // Not by `map`, as above.
        let mut rows: [&[[u8; SCREEN_COLUMNS]]; 4] = [&[]; 4];
        for row in 0..4 {
            rows[row] = &codes[row].as_chunks().0[..steps];
        }
        let (high, low) = (&planes[0].as_chunks().0[..steps], &planes[1].as_chunks().0[..steps]);
        let [mut high_sums, mut low_sums] = [[_mm256_setzero_si256(); 4]; 2];
        for step in 0..steps {
            prefetch_blocks(ahead, step);
            let high: __m256i = i8x32::simd_from(avx2, high[step]).into();
            let low: __m256i = i8x32::simd_from(avx2, low[step]).into();
            for row in 0..4 {
                let codes: __m256i = u8x32::simd_from(avx2, rows[row][step]).into();
                high_sums[row] = add(avx2, high_sums[row], codes, high);
                low_sums[row] = add(avx2, low_sums[row], codes, low);
            }
        }
        [add_lanes(avx2, high_sums), add_lanes(avx2, low_sums)]
    }
);
