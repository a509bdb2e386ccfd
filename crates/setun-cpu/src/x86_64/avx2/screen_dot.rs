//! AVX2 version of [`setun_ops::screen_dot`].
//!
//! `vpmaddubsw` multiplies 32 codes with a plane and adds pairs in 16 bits, where it saturates: a
//! pair is at most `2 × 127 × 128 = 32,512`, so it never does, and is widened at once. Two rows
//! of codes meet two hidden rows: eight sums stay in registers, beside two vectors of codes, one
//! of a plane, and what is not added yet. One hidden row meets four rows of codes.

#![expect(unsafe_code, reason = "functions that AVX-VNNI shares, which are generic")]

use std::arch::x86_64::{
    _mm256_add_epi16, _mm256_add_epi32, _mm256_madd_epi16, _mm256_maddubs_epi16, _mm256_set1_epi16,
};

use setun_ops::screen_planes::{COARSE_BYTES, PLANE_BLOCK, UNIT};

use crate::{
    screen_dot::{Dots, ScreenDot, TILE_TOKENS},
    x86_64::{coarse_kernels::coarse_kernel, prefetch, screen_kernels::screen_kernels},
};

coarse_kernel!("avx2", add_four);
screen_kernels!("avx2", add);

impl ScreenDot for Avx2 {
    const TILE_HIDDEN: usize = 2;

    fn screen_dots(
        self,
        codes: [&[u8]; TILE_TOKENS],
        ahead: [&[u8]; TILE_TOKENS],
        planes: &[[&[i8]; 2]],
        dots: &mut [Dots],
    ) {
        // SAFETY: `self` exists only where the features were detected.
        unsafe {
            match *planes {
                [] => {}
                [a] => dots[0] = four_rows(self, codes, ahead, a),
                [a, b, ..] => with_hidden(self, codes, ahead, [a, b], dots),
            }
        }
    }

    fn coarse_dots(
        self,
        coarse: [&[u8]; TILE_TOKENS],
        ahead: [&[u8]; TILE_TOKENS],
        planes: [&[i8]; 2],
    ) -> Dots {
        // SAFETY: as above.
        unsafe { coarse_rows(self, coarse, ahead, planes) }
    }

    fn request(self, ahead: &[u8]) {
        prefetch(ahead);
    }
}

/// Adds the products of 32 codes with a plane to eight lanes.
#[target_feature(enable = "avx2")]
#[inline]
fn add(sum: __m256i, codes: __m256i, x: __m256i) -> __m256i {
    let pairs = _mm256_maddubs_epi16(codes, x);
    _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)))
}

/// Adds the products of four times 32 coarse codes with a plane to eight lanes. In 16 bits four
/// pairs come to at most `4 × 2 × 31 × 128 = 31,744`.
#[target_feature(enable = "avx2")]
#[inline]
fn add_four(sums: [__m256i; 4], codes: [__m256i; 4], x: [__m256i; 4]) -> [__m256i; 4] {
    let pairs = [
        _mm256_maddubs_epi16(codes[0], x[0]),
        _mm256_maddubs_epi16(codes[1], x[1]),
        _mm256_maddubs_epi16(codes[2], x[2]),
        _mm256_maddubs_epi16(codes[3], x[3]),
    ];
    let pairs = _mm256_add_epi16(
        _mm256_add_epi16(pairs[0], pairs[1]),
        _mm256_add_epi16(pairs[2], pairs[3]),
    );
    let fours = _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
    [_mm256_add_epi32(sums[0], fours), sums[1], sums[2], sums[3]]
}
