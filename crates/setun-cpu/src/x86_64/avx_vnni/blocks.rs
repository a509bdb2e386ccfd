//! Blocks of packed codes, the activations that meet them, and their products.

use std::arch::x86_64::{
    __m256i, _mm256_and_si256, _mm256_dpbusd_avx_epi32, _mm256_set1_epi8, _mm256_srli_epi16,
};

use fearless_simd::{i8x32, prelude::*, u8x32, x86::Avx2};
use setun_ops::ternary::PLANE_COLUMNS;

use crate::ternary_dot::{ActivationBlock, CodeBlock};

/// Adds the products of a block of a row to its sums, which are 1 and 16 times too large.
#[target_feature(enable = "avxvnni")]
#[inline]
pub(super) fn add_planes(sums: [__m256i; 2], packed: __m256i, x: [__m256i; 4]) -> [__m256i; 2] {
    let [by_1, by_16] = sums;
    let masks = [_mm256_set1_epi8(0x03), _mm256_set1_epi8(0x30)];
    let shifted = _mm256_srli_epi16::<2>(packed);
    let by_1 = _mm256_dpbusd_avx_epi32(by_1, _mm256_and_si256(packed, masks[0]), x[0]);
    let by_1 = _mm256_dpbusd_avx_epi32(by_1, _mm256_and_si256(shifted, masks[0]), x[1]);
    let by_16 = _mm256_dpbusd_avx_epi32(by_16, _mm256_and_si256(packed, masks[1]), x[2]);
    let by_16 = _mm256_dpbusd_avx_epi32(by_16, _mm256_and_si256(shifted, masks[1]), x[3]);
    [by_1, by_16]
}

#[inline(always)]
pub(super) fn codes(avx2: Avx2, block: &CodeBlock) -> __m256i {
    u8x32::from_slice(avx2, block).into()
}

/// The activations of a plane.
#[inline(always)]
pub(super) fn activations(avx2: Avx2, block: &ActivationBlock, plane: usize) -> __m256i {
    i8x32::from_slice(avx2, &block.as_chunks::<PLANE_COLUMNS>().0[plane]).into()
}
