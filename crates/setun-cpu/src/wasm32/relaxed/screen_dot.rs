//! Relaxed-SIMD version of [`setun_ops::screen_dot`].
//!
//! A relaxed dot product multiplies 16 values of a plane with codes, which lie in 0..=127 as it
//! asks. Engines may saturate the 16-bit sums of pairs; a pair is at most
//! `2 × 127 × 128 = 32,512`, so none does, and the result is the same on every engine.

use std::arch::wasm32::{
    i16x8_relaxed_dot_i8x16_i7x16, i32x4_add, i32x4_extadd_pairwise_i16x8,
    i32x4_relaxed_dot_i8x16_i7x16_add, v128,
};

use super::{Products, Relaxed};
use crate::{
    screen_dot::{Dots, ScreenDot, TILE_TOKENS},
    wasm32::simd128::screen_dot::tile,
};

impl ScreenDot for Relaxed {
    #[inline(always)]
    fn screen_dots(
        self,
        codes: [&[u8]; TILE_TOKENS],
        _ahead: [&[u8]; TILE_TOKENS],
        planes: &[[&[i8]; 2]],
        dots: &mut [Dots],
    ) {
        for (&planes, dots) in planes.iter().zip(dots) {
            // One after the other, as in `simd128`; each way is a loop of its own.
            *dots = match self.products {
                Products::Fours => tile(self.simd, codes, planes, |plane| plane, add::<true>),
                Products::Pairs => tile(self.simd, codes, planes, |plane| plane, add::<false>),
            };
        }
    }
}

/// Adds the products of codes with both planes.
#[inline(always)]
fn add<const FOURS: bool>([high, low]: [v128; 2], codes: v128, sums: [v128; 2]) -> [v128; 2] {
    [add_products::<FOURS>(high, codes, sums[0]), add_products::<FOURS>(low, codes, sums[1])]
}

/// Adds the products of neighbouring fours to four lanes.
#[inline(always)]
fn add_products<const FOURS: bool>(plane: v128, codes: v128, sum: v128) -> v128 {
    if FOURS {
        return i32x4_relaxed_dot_i8x16_i7x16_add(plane, codes, sum);
    }
    let pairs = i16x8_relaxed_dot_i8x16_i7x16(plane, codes);
    i32x4_add(sum, i32x4_extadd_pairwise_i16x8(pairs))
}
