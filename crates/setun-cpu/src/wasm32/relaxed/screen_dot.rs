//! Relaxed-SIMD twin of [`setun_ops::screen_dot`].
//!
//! `i32x4.relaxed_dot_i8x16_i7x16_add_s` multiplies 16 values of a plane with codes, which lie in
//! 0..=127 as it asks. Engines may saturate the 16-bit sums of pairs; a pair is at most
//! `2 × 127 × 128 = 32,512`, so none does, and the result is the same on every engine.

use std::arch::wasm32::{i32x4_relaxed_dot_i8x16_i7x16_add, i32x4_splat, v128};

use fearless_simd::{i8x16, prelude::*};

use super::{
    Relaxed,
    ternary_dot::{BYTES, add_lanes, bytes},
};
use crate::screen_dot::{ScreenDot, TILE_TOKENS};

impl ScreenDot for Relaxed {
    #[inline(always)]
    fn screen_dots(
        self,
        codes: [&[u8]; TILE_TOKENS],
        planes: [&[i8]; 2],
    ) -> [[i32; 2]; TILE_TOKENS] {
        let simd = self.0;
        let columns = planes[0].len();
        let planes = planes.map(|plane| &plane[..columns]);
        let codes = codes.map(|row| &row[..columns]);
        let mut sums = [[i32x4_splat(0); 2]; TILE_TOKENS];
        for at in (0..columns).step_by(BYTES) {
            let planes: [v128; 2] =
                planes.map(|plane| i8x16::from_slice(simd, &plane[at..][..BYTES]).into());
            for (sums, codes) in sums.iter_mut().zip(codes) {
                let codes = bytes(simd, &codes[at..]);
                for (sum, plane) in sums.iter_mut().zip(planes) {
                    *sum = i32x4_relaxed_dot_i8x16_i7x16_add(plane, codes, *sum);
                }
            }
        }
        sums.map(|sums| sums.map(|sum| add_lanes(simd, sum)))
    }
}
