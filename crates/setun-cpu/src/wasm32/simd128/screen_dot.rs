//! WebAssembly SIMD twin of [`setun_ops::screen_dot`].
//!
//! A product is at most `127 × 128 = 16,256` in a lane of 16 bits, which takes the one of the
//! lower half and the one of the upper half, 32,512, before it is widened.

use std::arch::wasm32::{
    i16x8_add, i16x8_extmul_high_i8x16, i16x8_extmul_low_i8x16, i32x4_add,
    i32x4_extadd_pairwise_i16x8, i32x4_splat, v128,
};

use fearless_simd::{i8x16, prelude::*, u8x16, wasm32::WasmSimd128};

use super::{
    Simd128,
    ternary_dot::{BYTES, add_lanes},
};
use crate::screen_dot::{ScreenDot, TILE_TOKENS};

impl ScreenDot for Simd128 {
    #[inline(always)]
    fn screen_dots(
        self,
        codes: [&[u8]; TILE_TOKENS],
        planes: [&[i8]; 2],
    ) -> [[i32; 2]; TILE_TOKENS] {
        tile(self.0, codes, planes, |plane, codes, sum| {
            let lower = i16x8_extmul_low_i8x16(plane, codes);
            let upper = i16x8_extmul_high_i8x16(plane, codes);
            i32x4_add(sum, i32x4_extadd_pairwise_i16x8(i16x8_add(lower, upper)))
        })
    }
}

/// Sums over 16 columns at a time; `add(plane, codes, sum)` adds their products to four lanes.
#[inline(always)]
pub(in crate::wasm32) fn tile(
    simd: WasmSimd128,
    codes: [&[u8]; TILE_TOKENS],
    planes: [&[i8]; 2],
    add: impl Fn(v128, v128, v128) -> v128,
) -> [[i32; 2]; TILE_TOKENS] {
    let columns = planes[0].len();
    let planes = planes.map(|plane| &plane[..columns]);
    let codes = codes.map(|row| &row[..columns]);
    let mut sums = [[i32x4_splat(0); 2]; TILE_TOKENS];
    for at in (0..columns).step_by(BYTES) {
        let planes: [v128; 2] =
            planes.map(|plane| i8x16::from_slice(simd, &plane[at..][..BYTES]).into());
        for (sums, codes) in sums.iter_mut().zip(codes) {
            let codes: v128 = u8x16::from_slice(simd, &codes[at..][..BYTES]).into();
            for (sum, plane) in sums.iter_mut().zip(planes) {
                *sum = add(plane, codes, *sum);
            }
        }
    }
    sums.map(|sums| sums.map(|sum| add_lanes(simd, sum)))
}
