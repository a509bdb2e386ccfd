//! WebAssembly SIMD twin of [`setun_ops::screen_dot`].
//!
//! Codes are widened once for both planes, as engines make long work of products that widen. A
//! product is at most `127 × 128 = 16,256` in a lane of 16 bits, which takes the one of the lower
//! half and the one of the upper half, 32,512, before it is widened.

use std::arch::wasm32::{
    i16x8_add, i16x8_extend_high_i8x16, i16x8_extend_low_i8x16, i16x8_mul, i32x4_add,
    i32x4_extadd_pairwise_i16x8, i32x4_splat, u16x8_extend_high_u8x16, u16x8_extend_low_u8x16,
    v128,
};

use fearless_simd::{i8x16, prelude::*, u8x16, wasm32::WasmSimd128};

use super::{
    Simd128,
    ternary_dot::{BYTES, add_lanes},
};
use crate::screen_dot::{Dots, ScreenDot, TILE_TOKENS};

impl ScreenDot for Simd128 {
    #[inline(always)]
    fn screen_dots(self, codes: [&[u8]; TILE_TOKENS], planes: [&[i8]; 2]) -> Dots {
        tile(self.0, codes, planes, |[high, low], codes, sums| {
            let codes = [u16x8_extend_low_u8x16(codes), u16x8_extend_high_u8x16(codes)];
            [add_products(high, codes, sums[0]), add_products(low, codes, sums[1])]
        })
    }
}

/// Adds the products of 16 values of a plane with widened codes to four lanes.
#[inline(always)]
fn add_products(plane: v128, [lower, upper]: [v128; 2], sum: v128) -> v128 {
    let lower = i16x8_mul(i16x8_extend_low_i8x16(plane), lower);
    let upper = i16x8_mul(i16x8_extend_high_i8x16(plane), upper);
    i32x4_add(sum, i32x4_extadd_pairwise_i16x8(i16x8_add(lower, upper)))
}

/// Row after row; `add(planes, codes, sums)` adds the products of 16 columns to four lanes of the
/// sum of each plane.
#[inline(always)]
pub(in crate::wasm32) fn tile(
    simd: WasmSimd128,
    codes: [&[u8]; TILE_TOKENS],
    planes: [&[i8]; 2],
    add: impl Fn([v128; 2], v128, [v128; 2]) -> [v128; 2],
) -> Dots {
    let [high, low] = planes.map(|plane| plane.as_chunks::<BYTES>().0);
    let mut dots = Dots::default();
    for (token, codes) in codes.into_iter().enumerate() {
        let mut sums = [i32x4_splat(0); 2];
        for ((codes, high), low) in codes.as_chunks::<BYTES>().0.iter().zip(high).zip(low) {
            let codes: v128 = u8x16::simd_from(simd, *codes).into();
            let (high, low) = (i8x16::simd_from(simd, *high), i8x16::simd_from(simd, *low));
            sums = add([high.into(), low.into()], codes, sums);
        }
        for (dots, sums) in dots.iter_mut().zip(sums) {
            dots[token] = add_lanes(simd, sums);
        }
    }
    dots
}
