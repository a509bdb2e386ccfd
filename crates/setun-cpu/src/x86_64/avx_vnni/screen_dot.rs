//! AVX-VNNI version of [`setun_ops::screen_dot`].
//!
//! `vpdpbusd` multiplies 32 codes with a plane and adds four neighbours to 32 bits. Two rows of
//! codes meet two or three hidden rows: twelve sums stay in registers, beside two vectors of codes
//! and one of a plane. One hidden row meets four rows of codes.

#![expect(unsafe_code, reason = "functions for a feature that no token of a dependency proves")]

use std::arch::x86_64::_mm256_dpbusd_avx_epi32;

use super::AvxVnni;
use setun_ops::screen_planes::{COARSE_BYTES, PLANE_BLOCK, UNIT};

use crate::{
    screen_dot::{Dots, MAX_TILE_HIDDEN, ScreenDot, TILE_TOKENS},
    x86_64::{coarse_kernels::coarse_kernel, prefetch, screen_kernels::screen_kernels},
};

coarse_kernel!("avxvnni", add_four);
screen_kernels!("avxvnni", _mm256_dpbusd_avx_epi32);

impl ScreenDot for AvxVnni {
    const TILE_HIDDEN: usize = MAX_TILE_HIDDEN;

    fn screen_dots(
        self,
        codes: [&[u8]; TILE_TOKENS],
        ahead: [&[u8]; TILE_TOKENS],
        planes: &[[&[i8]; 2]],
        dots: &mut [Dots],
    ) {
        // SAFETY: `self` exists only where the feature was detected.
        unsafe {
            match *planes {
                [] => {}
                [a] => dots[0] = four_rows(self.0, codes, ahead, a),
                [a, b] => with_hidden(self.0, codes, ahead, [a, b], dots),
                [a, b, c, ..] => with_hidden(self.0, codes, ahead, [a, b, c], dots),
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
        unsafe { coarse_rows(self.0, coarse, ahead, planes) }
    }

    fn request(self, ahead: &[u8]) {
        prefetch(ahead);
    }
}

/// Adds the products of four times 32 coarse codes with a plane, each to lanes of its own, as one
/// sum would wait for itself.
#[target_feature(enable = "avxvnni")]
#[inline]
fn add_four(sums: [__m256i; 4], codes: [__m256i; 4], x: [__m256i; 4]) -> [__m256i; 4] {
    [
        _mm256_dpbusd_avx_epi32(sums[0], codes[0], x[0]),
        _mm256_dpbusd_avx_epi32(sums[1], codes[1], x[1]),
        _mm256_dpbusd_avx_epi32(sums[2], codes[2], x[2]),
        _mm256_dpbusd_avx_epi32(sums[3], codes[3], x[3]),
    ]
}
