//! What the levels of NEON share: loads, and the last sums.

use std::arch::aarch64::{int8x16_t, int32x4_t, uint8x16_t, vpaddq_s32};

use fearless_simd::{aarch64::Neon, i8x16, i32x4, prelude::*, u8x16};

/// Bytes of a vector: half a block of codes, half a plane of activations.
pub(super) const BYTES: usize = 16;

/// The first 16 bytes of packed codes.
#[inline(always)]
pub(super) fn codes(neon: Neon, packed: &[u8]) -> uint8x16_t {
    u8x16::from_slice(neon, &packed[..BYTES]).into()
}

/// The first 16 activations.
#[inline(always)]
pub(super) fn activations(neon: Neon, x: &[i8]) -> int8x16_t {
    i8x16::from_slice(neon, &x[..BYTES]).into()
}

#[inline(always)]
pub(super) fn lanes(neon: Neon, sums: int32x4_t) -> [i32; 4] {
    i32x4::simd_from(neon, sums).into()
}

fearless_simd::kernel!(
    /// The sum of the lanes of each of four vectors, by a transposing fold.
    #[inline]
    pub(super) fn add_lanes(neon: Neon, sums: [int32x4_t; 4]) -> [i32; 4] {
        let [a, b, c, d] = sums;
        lanes(neon, vpaddq_s32(vpaddq_s32(a, b), vpaddq_s32(c, d)))
    }
);
