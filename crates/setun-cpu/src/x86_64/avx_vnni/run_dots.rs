//! AVX-VNNI version of [`run_dots`](crate::ternary_dot::TernaryDot::run_dots).
//!
//! As [`ternary_dot`](super::ternary_dot) for one row of activations, but sums end with a block, which
//! lie within `2 × 128 × 128 = 2^15`: those of four rows are put together in 16 bits, and none is of
//! more than half a block before they are 32 bits wide. Shorter runs are those of AVX2.

#![expect(unsafe_code, reason = "functions for a feature that no token of a dependency proves")]

use std::arch::x86_64::{
    __m256i, _mm256_add_epi16, _mm256_add_epi32, _mm256_madd_epi16, _mm256_packs_epi32,
    _mm256_permute2x128_si256, _mm256_set1_epi16, _mm256_setzero_si256, _mm256_srai_epi32,
};

use fearless_simd::{i32x8, prelude::*, x86::Avx2};
use setun_ops::ternary::{BLOCK_BYTES, BLOCK_COLUMNS};

use super::{
    AvxVnni,
    blocks::{activations, add_planes, codes},
};
use crate::{
    ternary_dot::{ActivationBlock, CodeBlock, CodeDots, CodeRows, code_blocks},
    x86_64::{avx2::run_dots::run_dots as run_dots_avx2, prefetch::Requests},
};

/// Sums of four rows, of each run of columns.
pub(super) fn run_dots(
    avx_vnni: AvxVnni,
    weights: CodeRows<'_>,
    ahead: CodeRows<'_>,
    x: &[i8],
    run: usize,
    dots: &mut [CodeDots],
) {
    if run < BLOCK_COLUMNS {
        return run_dots_avx2(avx_vnni.0, weights, ahead, x, run, dots);
    }
    // SAFETY: the token exists only where the feature was detected.
    unsafe { whole_blocks(avx_vnni.0, weights, ahead, x, dots) }
}

#[target_feature(enable = "avxvnni")]
fn whole_blocks(
    avx2: Avx2,
    weights: CodeRows<'_>,
    ahead: CodeRows<'_>,
    x: &[i8],
    dots: &mut [CodeDots],
) {
    let (requests, (x, _)) = (Requests::new(), x.as_chunks());
    let weights = code_blocks(weights, x.len());
    let (pairs, last) = dots[..x.len()].as_chunks_mut::<2>();
    for (pair, dots) in pairs.iter_mut().enumerate() {
        let block = 2 * pair;
        requests.lines(ahead, block * BLOCK_BYTES);
        let first = whole_block(avx2, weights, &x[block], block);
        let second = whole_block(avx2, weights, &x[block + 1], block + 1);
        *dots = both(avx2, first, second);
    }
    if let [last] = last {
        let block = x.len() - 1;
        let first = whole_block(avx2, weights, &x[block], block);
        [*last, _] = both(avx2, first, _mm256_setzero_si256());
    }
}

/// The sums of a block of four rows, four parts of each in 16 bits: `[a a b b c c d d]` twice.
#[target_feature(enable = "avxvnni")]
#[inline]
fn whole_block(
    avx2: Avx2,
    weights: [&[CodeBlock]; 4],
    x: &ActivationBlock,
    block: usize,
) -> __m256i {
    let x = [
        activations(avx2, x, 0),
        activations(avx2, x, 1),
        activations(avx2, x, 2),
        activations(avx2, x, 3),
    ];
    let a = block_sum(codes(avx2, &weights[0][block]), x);
    let b = block_sum(codes(avx2, &weights[1][block]), x);
    let c = block_sum(codes(avx2, &weights[2][block]), x);
    let d = block_sum(codes(avx2, &weights[3][block]), x);
    let ones = _mm256_set1_epi16(1);
    let ab = _mm256_madd_epi16(_mm256_packs_epi32(a, b), ones);
    let cd = _mm256_madd_epi16(_mm256_packs_epi32(c, d), ones);
    _mm256_packs_epi32(ab, cd)
}

/// Adds the parts of two blocks.
#[target_feature(enable = "avxvnni")]
#[inline]
fn both(avx2: Avx2, first: __m256i, second: __m256i) -> [CodeDots; 2] {
    let parts = _mm256_add_epi16(
        _mm256_permute2x128_si256::<0x20>(first, second),
        _mm256_permute2x128_si256::<0x31>(first, second),
    );
    let sums = i32x8::simd_from(avx2, _mm256_madd_epi16(parts, _mm256_set1_epi16(1)));
    let mut dots = [CodeDots::default(); 2];
    sums.store_slice(dots.as_flattened_mut());
    dots
}

#[target_feature(enable = "avxvnni")]
#[inline]
fn block_sum(packed: __m256i, x: [__m256i; 4]) -> __m256i {
    let [by_1, by_16] = add_planes([_mm256_setzero_si256(); 2], packed, x);
    _mm256_add_epi32(by_1, _mm256_srai_epi32::<4>(by_16))
}
