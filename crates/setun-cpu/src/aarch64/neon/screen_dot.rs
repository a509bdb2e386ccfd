//! NEON version of [`setun_ops::screen_dot`], of all levels of NEON.
//!
//! A product is at most `127 × 128 = 16,256` in a lane of 16 bits, which takes the one of the
//! lower half and the one of the upper half, 32,512, before it is widened.

use std::arch::aarch64::{
    int8x16_t, int32x4_t, vdupq_n_s32, vget_low_s8, vmlal_high_s8, vmull_s8, vpadalq_s16,
    vreinterpretq_s8_u8,
};

use fearless_simd::{aarch64::Neon, i8x16, prelude::*, u8x16};

use crate::{
    aarch64::{neon_dotprod::NeonDotprod, neon_i8mm::NeonI8mm, vectors::add_lanes},
    screen_dot::{Dots, ScreenDot, TILE_TOKENS},
};

/// Bytes of a vector.
const BYTES: usize = 16;

impl ScreenDot for Neon {
    fn screen_dots(
        self,
        codes: [&[u8]; TILE_TOKENS],
        _ahead: [&[u8]; TILE_TOKENS],
        planes: &[[&[i8]; 2]],
        dots: &mut [Dots],
    ) {
        // One after the other: the rows of codes stay in the first-level cache.
        for (&planes, dots) in planes.iter().zip(dots) {
            *dots = four_rows(self, codes, planes);
        }
    }
}

macro_rules! as_neon {
    ($level:ty) => {
        impl ScreenDot for $level {
            fn screen_dots(
                self,
                codes: [&[u8]; TILE_TOKENS],
                ahead: [&[u8]; TILE_TOKENS],
                planes: &[[&[i8]; 2]],
                dots: &mut [Dots],
            ) {
                self.0.screen_dots(codes, ahead, planes, dots);
            }
        }
    };
}

as_neon!(NeonDotprod);
as_neon!(NeonI8mm);

fearless_simd::kernel!(
    #[inline]
    fn four_rows(neon: Neon, codes: [&[u8]; 4], planes: [&[i8]; 2]) -> [[i32; 4]; 2] {
        let columns = planes[0].len();
        let planes = planes.map(|plane| &plane[..columns]);
        let codes = codes.map(|row| &row[..columns]);
        let mut sums = [[vdupq_n_s32(0); 4]; 2];
        for at in (0..columns).step_by(BYTES) {
            let planes: [int8x16_t; 2] =
                planes.map(|plane| i8x16::from_slice(neon, &plane[at..][..BYTES]).into());
            for (row, codes) in codes.iter().enumerate() {
                let codes = u8x16::from_slice(neon, &codes[at..][..BYTES]).into();
                let codes = vreinterpretq_s8_u8(codes);
                for (sums, plane) in sums.iter_mut().zip(planes) {
                    sums[row] = add(neon, sums[row], codes, plane);
                }
            }
        }
        sums.map(|sums| add_lanes(neon, sums))
    }
);

fearless_simd::kernel!(
    #[inline]
    fn add(_neon: Neon, sum: int32x4_t, codes: int8x16_t, plane: int8x16_t) -> int32x4_t {
        let products = vmull_s8(vget_low_s8(codes), vget_low_s8(plane));
        vpadalq_s16(sum, vmlal_high_s8(products, codes, plane))
    }
);
