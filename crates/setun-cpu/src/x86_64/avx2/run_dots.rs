//! AVX2 version of [`run_dots`](crate::ternary_dot::TernaryDot::run_dots).
//!
//! As [`ternary_dot`](super::ternary_dot) for one row of activations, but sums end with a run of
//! columns. They stay in 16 bits until those of four rows lie in one vector: a pair of products of four
//! planes lies within `4 × 2 × 2 × 128 = 2048`, and four of them are added.

use std::arch::x86_64::{
    __m128i, __m256i, _mm_add_epi32, _mm256_add_epi16, _mm256_add_epi32, _mm256_and_si256,
    _mm256_castsi256_si128, _mm256_extracti128_si256, _mm256_hadd_epi16, _mm256_madd_epi16,
    _mm256_maddubs_epi16, _mm256_permute2x128_si256, _mm256_set1_epi8, _mm256_set1_epi16,
    _mm256_srai_epi16, _mm256_srli_epi16,
};

use fearless_simd::{i8x32, i32x4, i32x8, prelude::*, u8x32, x86::Avx2};
use setun_ops::ternary::{BLOCK_BYTES, BLOCK_COLUMNS, PLANE_COLUMNS};

use crate::{
    ternary_dot::{ActivationBlock, CodeBlock, CodeDots, CodeRows, code_blocks},
    x86_64::{prefetch::Requests, prefetch_blocks},
};

/// Sums of four rows, of each run of columns.
pub(crate) fn run_dots(
    avx2: Avx2,
    weights: CodeRows<'_>,
    ahead: CodeRows<'_>,
    x: &[i8],
    run: usize,
    dots: &mut [CodeDots],
) {
    match run {
        BLOCK_COLUMNS => whole_blocks(avx2, weights, ahead, x, dots),
        PLANE_COLUMNS => planes(avx2, weights, ahead, x, dots),
        _ => halves(avx2, weights, ahead, x, dots),
    }
}

fearless_simd::kernel!(
    #[inline]
    fn whole_blocks(
        avx2: Avx2,
        weights: [&[u8]; 4],
        ahead: [&[u8]; 4],
        x: &[i8],
        dots: &mut [[i32; 4]],
    ) {
        let (requests, (x, _)) = (Requests::new(), x.as_chunks());
        let weights = code_blocks(weights, x.len());
        let (pairs, last) = dots[..x.len()].as_chunks_mut::<2>();
        for (pair, dots) in pairs.iter_mut().enumerate() {
            let block = 2 * pair;
            requests.lines(ahead, block * BLOCK_BYTES);
            let first = whole_block(avx2, weights, &x[block], block);
            let second = whole_block(avx2, weights, &x[block + 1], block + 1);
            store_two(avx2, first, second, dots);
        }
        if let [last] = last {
            let block = x.len() - 1;
            *last = one(avx2, whole_block(avx2, weights, &x[block], block));
        }
    }
);

fearless_simd::kernel!(
    #[inline]
    fn halves(avx2: Avx2, weights: [&[u8]; 4], ahead: [&[u8]; 4], x: &[i8], dots: &mut [[i32; 4]]) {
        let (x, _) = x.as_chunks();
        let weights = code_blocks(weights, x.len());
        for (block, dots) in dots.as_chunks_mut::<2>().0[..x.len()].iter_mut().enumerate() {
            prefetch_blocks(ahead, block);
            let [a, b, c, d] = four_products(avx2, weights, &x[block], block);
            let first =
                fold(avx2, [add(avx2, a, 0), add(avx2, b, 0), add(avx2, c, 0), add(avx2, d, 0)]);
            let second =
                fold(avx2, [add(avx2, a, 2), add(avx2, b, 2), add(avx2, c, 2), add(avx2, d, 2)]);
            store_two(avx2, first, second, dots);
        }
    }
);

fearless_simd::kernel!(
    #[inline]
    fn planes(avx2: Avx2, weights: [&[u8]; 4], ahead: [&[u8]; 4], x: &[i8], dots: &mut [[i32; 4]]) {
        let (x, _) = x.as_chunks();
        let weights = code_blocks(weights, x.len());
        for (block, dots) in dots.as_chunks_mut::<4>().0[..x.len()].iter_mut().enumerate() {
            prefetch_blocks(ahead, block);
            let [a, b, c, d] = four_products(avx2, weights, &x[block], block);
            let (halves, _) = dots.as_chunks_mut::<2>();
            for (half, dots) in halves.iter_mut().enumerate() {
                let plane = 2 * half;
                let first = fold(avx2, [a[plane], b[plane], c[plane], d[plane]]);
                let next = plane + 1;
                let second = fold(avx2, [a[next], b[next], c[next], d[next]]);
                store_two(avx2, first, second, dots);
            }
        }
    }
);

fearless_simd::kernel!(
    /// The sums of a block of four rows, two parts of each.
    #[inline]
    fn whole_block(
        avx2: Avx2,
        weights: [&[CodeBlock]; 4],
        x: &ActivationBlock,
        block: usize,
    ) -> __m256i {
        let a = block_sum(avx2, &weights[0][block], x);
        let b = block_sum(avx2, &weights[1][block], x);
        let c = block_sum(avx2, &weights[2][block], x);
        let d = block_sum(avx2, &weights[3][block], x);
        fold(avx2, [a, b, c, d])
    }
);

fearless_simd::kernel!(
    /// The 16-bit sums of a block of a row.
    #[inline]
    fn block_sum(avx2: Avx2, codes: &CodeBlock, x: &ActivationBlock) -> __m256i {
        let masks = [_mm256_set1_epi8(0x03), _mm256_set1_epi8(0x0c)];
        let packed: __m256i = u8x32::from_slice(avx2, codes).into();
        let shifted = _mm256_srli_epi16::<4>(packed);
        let product = |codes: __m256i, mask: usize, plane: usize| {
            _mm256_maddubs_epi16(_mm256_and_si256(codes, masks[mask]), activations(avx2, x, plane))
        };
        let by_1 = _mm256_add_epi16(product(packed, 0, 0), product(shifted, 0, 2));
        let by_4 = _mm256_add_epi16(product(packed, 1, 1), product(shifted, 1, 3));
        _mm256_add_epi16(by_1, _mm256_srai_epi16::<2>(by_4))
    }
);

fearless_simd::kernel!(
    /// The 16-bit products of a block of four rows, of each plane.
    #[inline]
    fn four_products(
        avx2: Avx2,
        weights: [&[CodeBlock]; 4],
        x: &ActivationBlock,
        block: usize,
    ) -> [[__m256i; 4]; 4] {
        [
            products(avx2, &weights[0][block], x),
            products(avx2, &weights[1][block], x),
            products(avx2, &weights[2][block], x),
            products(avx2, &weights[3][block], x),
        ]
    }
);

fearless_simd::kernel!(
    #[inline]
    fn products(avx2: Avx2, codes: &CodeBlock, x: &ActivationBlock) -> [__m256i; 4] {
        let masks = [_mm256_set1_epi8(0x03), _mm256_set1_epi8(0x0c)];
        let packed: __m256i = u8x32::from_slice(avx2, codes).into();
        let shifted = _mm256_srli_epi16::<4>(packed);
        let product = |codes: __m256i, mask: usize, plane: usize| {
            _mm256_maddubs_epi16(_mm256_and_si256(codes, masks[mask]), activations(avx2, x, plane))
        };
        [
            product(packed, 0, 0),
            _mm256_srai_epi16::<2>(product(packed, 1, 1)),
            product(shifted, 0, 2),
            _mm256_srai_epi16::<2>(product(shifted, 1, 3)),
        ]
    }
);

fearless_simd::kernel!(
    /// Two neighbouring planes of a row.
    #[inline]
    fn add(_avx2: Avx2, planes: [__m256i; 4], first: usize) -> __m256i {
        _mm256_add_epi16(planes[first], planes[first + 1])
    }
);

fearless_simd::kernel!(
    /// From 16-bit sums of four rows to two parts of each row's sum: `[a b c d]` in both halves.
    #[inline]
    fn fold(_avx2: Avx2, rows: [__m256i; 4]) -> __m256i {
        let [a, b, c, d] = rows;
        let fours = _mm256_hadd_epi16(_mm256_hadd_epi16(a, b), _mm256_hadd_epi16(c, d));
        _mm256_madd_epi16(fours, _mm256_set1_epi16(1))
    }
);

fearless_simd::kernel!(
    /// Puts both halves of two vectors together and stores them.
    #[inline]
    fn store_two(avx2: Avx2, first: __m256i, second: __m256i, dots: &mut [[i32; 4]; 2]) {
        let sum = _mm256_add_epi32(
            _mm256_permute2x128_si256::<0x20>(first, second),
            _mm256_permute2x128_si256::<0x31>(first, second),
        );
        let sum = i32x8::simd_from(avx2, sum);
        sum.store_slice(dots.as_flattened_mut());
    }
);

fearless_simd::kernel!(
    /// Puts both halves of a vector together.
    #[inline]
    fn one(avx2: Avx2, halves: __m256i) -> [i32; 4] {
        let sum: __m128i =
            _mm_add_epi32(_mm256_castsi256_si128(halves), _mm256_extracti128_si256::<1>(halves));
        i32x4::simd_from(avx2, sum).into()
    }
);

fearless_simd::kernel!(
    /// The activations of a plane.
    #[inline]
    fn activations(avx2: Avx2, block: &ActivationBlock, plane: usize) -> __m256i {
        i8x32::from_slice(avx2, &block.as_chunks::<PLANE_COLUMNS>().0[plane]).into()
    }
);
