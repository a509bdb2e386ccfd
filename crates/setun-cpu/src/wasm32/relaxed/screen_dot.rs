//! Relaxed-SIMD twin of [`setun_ops::screen_dot`].
//!
//! `i32x4.relaxed_dot_i8x16_i7x16_add_s` multiplies 16 values of a plane with codes, which lie in
//! 0..=127 as it asks. Engines may saturate the 16-bit sums of pairs; a pair is at most
//! `2 × 127 × 128 = 32,512`, so none does, and the result is the same on every engine.

use std::arch::wasm32::i32x4_relaxed_dot_i8x16_i7x16_add;

use super::Relaxed;
use crate::{
    screen_dot::{ScreenDot, TILE_TOKENS},
    wasm32::simd128::screen_dot::tile,
};

impl ScreenDot for Relaxed {
    #[inline(always)]
    fn screen_dots(
        self,
        codes: [&[u8]; TILE_TOKENS],
        planes: [&[i8]; 2],
    ) -> [[i32; 2]; TILE_TOKENS] {
        tile(self.0, codes, planes, |plane, codes, sum| {
            i32x4_relaxed_dot_i8x16_i7x16_add(plane, codes, sum)
        })
    }
}
