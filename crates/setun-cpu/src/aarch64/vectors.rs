//! Vector helpers of the NEON levels: loads, planes of codes, and the last sums.
//!
//! A vector has 16 bytes, half a block of codes or half a plane of activations.

use std::arch::aarch64::{
    int8x16_t, int32x4_t, uint8x16_t, vandq_u8, vdupq_n_u8, vpaddq_s32, vshrq_n_u8,
};

use fearless_simd::{aarch64::Neon, i8x16, i32x4, prelude::*, u8x16};

use crate::ternary_dot::{ActivationBlock, CodeBlock};

/// Bytes of a vector.
const BYTES: usize = 16;

/// One half of a block's bytes.
#[inline(always)]
pub(super) fn codes(neon: Neon, block: &CodeBlock, half: usize) -> uint8x16_t {
    u8x16::from_slice(neon, &block.as_chunks::<BYTES>().0[half]).into()
}

/// One half of the activations of a plane.
#[inline(always)]
pub(super) fn activations(
    neon: Neon,
    block: &ActivationBlock,
    plane: usize,
    half: usize,
) -> int8x16_t {
    i8x16::from_slice(neon, &block.as_chunks::<BYTES>().0[2 * plane + half]).into()
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

fearless_simd::kernel!(
    /// The codes of each plane of packed ones.
    #[inline]
    pub(super) fn planes(_neon: Neon, packed: uint8x16_t) -> [uint8x16_t; 4] {
        let low_bits = vdupq_n_u8(0b11);
        [
            vandq_u8(packed, low_bits),
            vandq_u8(vshrq_n_u8::<2>(packed), low_bits),
            vandq_u8(vshrq_n_u8::<4>(packed), low_bits),
            vshrq_n_u8::<6>(packed),
        ]
    }
);

/// `sums += more` for four outputs.
#[inline(always)]
pub(super) fn add_to(neon: Neon, sums: &mut [i32; 4], more: int32x4_t) {
    let total = i32x4::from_slice(neon, sums) + i32x4::simd_from(neon, more);
    total.store_slice(sums);
}
