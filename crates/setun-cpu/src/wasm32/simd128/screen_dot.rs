//! WebAssembly SIMD version of [`setun_ops::screen_dot`].
//!
//! Codes are widened once for both planes, planes once for four rows, as engines make long work of products that widen. A
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
    fn screen_dots(
        self,
        codes: [&[u8]; TILE_TOKENS],
        _ahead: [&[u8]; TILE_TOKENS],
        planes: &[[&[i8]; 2]],
        dots: &mut [Dots],
    ) {
        let widen = |plane| [i16x8_extend_low_i8x16(plane), i16x8_extend_high_i8x16(plane)];
        // One after the other: the rows of codes stay in the first-level cache.
        for (&planes, dots) in planes.iter().zip(dots) {
            *dots = tile(self.0, codes, planes, widen, |[high, low], codes, sums| {
                let codes = [u16x8_extend_low_u8x16(codes), u16x8_extend_high_u8x16(codes)];
                [add_products(high, codes, sums[0]), add_products(low, codes, sums[1])]
            });
        }
    }
}

/// Adds the products of 16 widened values of a plane with widened codes to four lanes.
#[inline(always)]
fn add_products(plane: [v128; 2], codes: [v128; 2], sum: v128) -> v128 {
    let lower = i16x8_mul(plane[0], codes[0]);
    let upper = i16x8_mul(plane[1], codes[1]);
    i32x4_add(sum, i32x4_extadd_pairwise_i16x8(i16x8_add(lower, upper)))
}

/// Four rows at once, which share what `widen` makes of 16 values of a plane;
/// `add(planes, codes, sums)` adds their products with 16 codes to four lanes of the sum of each
/// plane.
#[inline(always)]
pub(in crate::wasm32) fn tile<W: Copy>(
    simd: WasmSimd128,
    codes: [&[u8]; TILE_TOKENS],
    planes: [&[i8]; 2],
    widen: impl Fn(v128) -> W,
    add: impl Fn([W; 2], v128, [v128; 2]) -> [v128; 2],
) -> Dots {
    let steps = planes[0].len() / BYTES;
    let [high, low] = planes.map(|plane| &plane.as_chunks::<BYTES>().0[..steps]);
    let codes = codes.map(|row| &row.as_chunks::<BYTES>().0[..steps]);
    let mut sums = [[i32x4_splat(0); 2]; TILE_TOKENS];
    for step in 0..steps {
        let high: v128 = i8x16::simd_from(simd, high[step]).into();
        let low: v128 = i8x16::simd_from(simd, low[step]).into();
        let planes = [widen(high), widen(low)];
        for (sums, codes) in sums.iter_mut().zip(codes) {
            *sums = add(planes, u8x16::simd_from(simd, codes[step]).into(), *sums);
        }
    }
    let plane = |plane: usize| sums.map(|sums| add_lanes(simd, sums[plane]));
    [plane(0), plane(1)]
}
