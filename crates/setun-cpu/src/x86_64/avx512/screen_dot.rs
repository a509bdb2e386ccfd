//! AVX-512 version of [`setun_ops::screen_dot`].
//!
//! `vpdpbusd` multiplies 64 codes with a plane and adds four neighbours to 32 bits. Four rows of
//! codes meet up to three hidden rows: 24 sums stay in registers, beside four vectors of codes
//! and one of a plane.

use std::arch::x86_64::{
    __m256i, __m512i, _mm512_add_epi32, _mm512_and_si512, _mm512_dpbusd_epi32, _mm512_or_si512,
    _mm512_set1_epi8, _mm512_setzero_si512, _mm512_srli_epi16, _mm512_zextsi256_si512,
};

use fearless_simd::{i8x32, i8x64, prelude::*, u8x32, u8x64, x86::Avx512};
use setun_ops::{
    screen_dot::SCREEN_COLUMNS,
    screen_planes::{COARSE_BYTES, LINES, PLANE_BLOCK, UNIT},
};

use super::ternary_dot::add_lanes;
use crate::{
    screen_dot::{Dots, MAX_TILE_HIDDEN, ScreenDot, TILE_TOKENS},
    x86_64::{coarse_kernels::coarse_units, prefetch, prefetch_blocks},
};

/// Columns of a vector.
const VECTOR: usize = 2 * SCREEN_COLUMNS;

impl ScreenDot for Avx512 {
    const TILE_HIDDEN: usize = MAX_TILE_HIDDEN;

    fn screen_dots(
        self,
        codes: [&[u8]; TILE_TOKENS],
        ahead: [&[u8]; TILE_TOKENS],
        planes: &[[&[i8]; 2]],
        dots: &mut [Dots],
    ) {
        match *planes {
            [] => {}
            [a] => with_one(self, codes, ahead, [a], dots),
            [a, b] => with_two(self, codes, ahead, [a, b], dots),
            [a, b, c, ..] => with_three(self, codes, ahead, [a, b, c], dots),
        }
    }

    fn coarse_dots(
        self,
        coarse: [&[u8]; TILE_TOKENS],
        ahead: [&[u8]; TILE_TOKENS],
        planes: [&[i8]; 2],
    ) -> Dots {
        coarse_rows(self, coarse, ahead, planes)
    }

    fn request(self, ahead: &[u8]) {
        prefetch(ahead);
    }
}

/// A kernel for this many hidden rows. (Kernels cannot be generic.)
macro_rules! with_hidden {
    ($name:ident, $hidden:literal) => {
        fearless_simd::kernel!(
            #[inline]
            fn $name(
                avx512: Avx512,
                codes: [&[u8]; 4],
                ahead: [&[u8]; 4],
                planes: [[&[i8]; 2]; $hidden],
                dots: &mut [Dots],
            ) {
                let columns = codes[0].len();
                let steps = columns / VECTOR;
                // Not by `map`, whose closure would be called, and the lengths be forgotten.
                let mut rows: [&[[u8; VECTOR]]; 4] = [&[]; 4];
                for row in 0..4 {
                    rows[row] = &codes[row].as_chunks().0[..steps];
                }
                let mut x: [[&[[i8; VECTOR]]; 2]; $hidden] = [[&[]; 2]; $hidden];
                for hidden in 0..$hidden {
                    for plane in 0..2 {
                        x[hidden][plane] = &planes[hidden][plane].as_chunks().0[..steps];
                    }
                }
                let mut sums = [[[_mm512_setzero_si512(); 4]; 2]; $hidden];
                for step in 0..steps {
                    prefetch_blocks(ahead, 2 * step);
                    let codes = [
                        u8x64::simd_from(avx512, rows[0][step]).into(),
                        u8x64::simd_from(avx512, rows[1][step]).into(),
                        u8x64::simd_from(avx512, rows[2][step]).into(),
                        u8x64::simd_from(avx512, rows[3][step]).into(),
                    ];
                    for hidden in 0..$hidden {
                        for plane in 0..2 {
                            let x = i8x64::simd_from(avx512, x[hidden][plane][step]).into();
                            sums[hidden][plane] = add(avx512, sums[hidden][plane], codes, x);
                        }
                    }
                }
                if steps * VECTOR < columns {
                    let at = steps * VECTOR;
                    let codes = [
                        codes_at(avx512, codes[0], at),
                        codes_at(avx512, codes[1], at),
                        codes_at(avx512, codes[2], at),
                        codes_at(avx512, codes[3], at),
                    ];
                    for hidden in 0..$hidden {
                        for plane in 0..2 {
                            let x = plane_at(avx512, planes[hidden][plane], at);
                            sums[hidden][plane] = add(avx512, sums[hidden][plane], codes, x);
                        }
                    }
                }
                for (dots, [high, low]) in dots.iter_mut().zip(sums) {
                    *dots = [add_lanes(avx512, high), add_lanes(avx512, low)];
                }
            }
        );
    };
}

with_hidden!(with_one, 1);
with_hidden!(with_two, 2);
with_hidden!(with_three, 3);

fearless_simd::kernel!(
    /// The sums of four rows of coarse codes, one after another.
    #[inline]
    fn coarse_rows(
        avx512: Avx512,
        rows: [&[u8]; 4],
        ahead: [&[u8]; 4],
        planes: [&[i8]; 2],
    ) -> Dots {
        let mut sums = [[_mm512_setzero_si512(); 4]; 2];
        for row in 0..4 {
            let [high, low] = coarse_row(avx512, rows[row], ahead[row], planes);
            sums[0][row] = high;
            sums[1][row] = low;
        }
        [add_lanes(avx512, sums[0]), add_lanes(avx512, sums[1])]
    }
);

fearless_simd::kernel!(
    /// The sums of a row with both planes.
    #[inline]
    fn coarse_row(avx512: Avx512, row: &[u8], ahead: &[u8], planes: [&[i8]; 2]) -> [__m512i; 2] {
        let blocks = row.as_chunks::<COARSE_BYTES>().0;
        let ahead = &ahead.as_chunks::<COARSE_BYTES>().0[..blocks.len()];
        let high = &planes[0].as_chunks::<PLANE_BLOCK>().0[..blocks.len()];
        let low = &planes[1].as_chunks::<PLANE_BLOCK>().0[..blocks.len()];
        let [mut high_sums, mut low_sums] = [[_mm512_setzero_si512(); 4]; 2];
        for block in 0..blocks.len() {
            prefetch(&ahead[block]);
            let lines = blocks[block].as_chunks::<UNIT>().0;
            let lines: [__m512i; LINES] = [
                u8x64::simd_from(avx512, lines[0]).into(),
                u8x64::simd_from(avx512, lines[1]).into(),
                u8x64::simd_from(avx512, lines[2]).into(),
                u8x64::simd_from(avx512, lines[3]).into(),
                u8x64::simd_from(avx512, lines[4]).into(),
            ];
            let codes = coarse_units!(
                lines,
                _mm512_set1_epi8,
                _mm512_and_si512,
                _mm512_or_si512,
                _mm512_srli_epi16
            );
            let (high, low) = (high[block].as_chunks::<UNIT>().0, low[block].as_chunks::<UNIT>().0);
            for part in 0..2 {
                for unit in 0..4 {
                    let codes = codes[part][unit];
                    let x = i8x64::simd_from(avx512, high[4 * part + unit]).into();
                    high_sums[unit] = _mm512_dpbusd_epi32(high_sums[unit], codes, x);
                    let x = i8x64::simd_from(avx512, low[4 * part + unit]).into();
                    low_sums[unit] = _mm512_dpbusd_epi32(low_sums[unit], codes, x);
                }
            }
        }
        let [a, b, c, d] = high_sums;
        let [e, f, g, h] = low_sums;
        [
            _mm512_add_epi32(_mm512_add_epi32(a, b), _mm512_add_epi32(c, d)),
            _mm512_add_epi32(_mm512_add_epi32(e, f), _mm512_add_epi32(g, h)),
        ]
    }
);

fearless_simd::kernel!(
    /// Adds the products of four rows' codes with a plane.
    #[inline]
    fn add(_avx512: Avx512, sums: [__m512i; 4], codes: [__m512i; 4], x: __m512i) -> [__m512i; 4] {
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
