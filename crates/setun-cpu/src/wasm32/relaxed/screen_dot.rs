//! Relaxed-SIMD twin of [`setun_ops::screen_dot`].
//!
//! A relaxed dot product multiplies 16 values of a plane with codes, which lie in 0..=127 as it
//! asks. Engines may saturate the 16-bit sums of pairs; a pair is at most
//! `2 × 127 × 128 = 32,512`, so none does, and the result is the same on every engine.

use super::{Products, Relaxed, add_products};
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
        // Each way is a loop of its own.
        match self.products {
            Products::Fours => tile(self.simd, codes, planes, |x, codes, sum| {
                add_products(Products::Fours, x, codes, sum)
            }),
            Products::Pairs => tile(self.simd, codes, planes, |x, codes, sum| {
                add_products(Products::Pairs, x, codes, sum)
            }),
        }
    }
}
