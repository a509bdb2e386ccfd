//! AVX-512 version of [`run_dots`](crate::ternary_dot::TernaryDot::run_dots).
//!
//! As [`ternary_dot`](super::ternary_dot) for one row of activations, but sums end with a run of
//! columns: a load brings two blocks, whose sums keep a half of the vector each.

use std::arch::x86_64::{
    __m512i, _mm512_add_epi32, _mm512_and_si512, _mm512_castsi512_si128, _mm512_castsi512_si256,
    _mm512_dpbusd_epi32, _mm512_set1_epi8, _mm512_setzero_si512, _mm512_shuffle_i32x4,
    _mm512_srai_epi32, _mm512_srli_epi16, _mm512_unpackhi_epi32, _mm512_unpackhi_epi64,
    _mm512_unpacklo_epi32, _mm512_unpacklo_epi64,
};

use fearless_simd::{i32x4, i32x8, i32x16, prelude::*, x86::Avx512};
use setun_ops::ternary::{BLOCK_COLUMNS, PLANE_COLUMNS};

use super::blocks::{activations, codes, planes};
use crate::{
    ternary_dot::{CodeDots, CodeRows},
    x86_64::prefetch_blocks,
};

/// Sums of four rows, of each run of columns.
pub(super) fn run_dots(
    avx512: Avx512,
    weights: CodeRows<'_>,
    ahead: CodeRows<'_>,
    x: &[i8],
    run: usize,
    dots: &mut [CodeDots],
) {
    let dots = &mut dots[..x.len() / run];
    match run {
        BLOCK_COLUMNS => whole_blocks(avx512, weights, ahead, x, dots),
        PLANE_COLUMNS => by_planes(avx512, weights, ahead, x, dots),
        _ => halves(avx512, weights, ahead, x, dots),
    }
}

fearless_simd::kernel!(
    /// Sums of whole blocks. The sum of a pair is written out here: a kernel that is called from several
    /// places is not inlined, and its vectors pass through memory.
    #[inline]
    fn whole_blocks(
        avx512: Avx512,
        weights: [&[u8]; 4],
        ahead: [&[u8]; 4],
        x: &[i8],
        dots: &mut [[i32; 4]],
    ) {
        let pairs = x.chunks(2 * BLOCK_COLUMNS);
        for (pair, (x, dots)) in pairs.zip(dots.chunks_mut(2)).enumerate() {
            prefetch_blocks(ahead, 2 * pair);
            let x = [
                activations(avx512, x, 0),
                activations(avx512, x, 1),
                activations(avx512, x, 2),
                activations(avx512, x, 3),
            ];
            let a = half_sums(avx512, codes(avx512, weights[0], pair), x);
            let b = half_sums(avx512, codes(avx512, weights[1], pair), x);
            let c = half_sums(avx512, codes(avx512, weights[2], pair), x);
            let d = half_sums(avx512, codes(avx512, weights[3], pair), x);
            let rows = [
                _mm512_add_epi32(a[0], a[1]),
                _mm512_add_epi32(b[0], b[1]),
                _mm512_add_epi32(c[0], c[1]),
                _mm512_add_epi32(d[0], d[1]),
            ];
            let sums = fold(avx512, rows);
            store_last(avx512, both(avx512, sums, sums), dots);
        }
    }
);

fearless_simd::kernel!(
    #[inline]
    fn halves(
        avx512: Avx512,
        weights: [&[u8]; 4],
        ahead: [&[u8]; 4],
        x: &[i8],
        dots: &mut [[i32; 4]],
    ) {
        let pairs = x.chunks(2 * BLOCK_COLUMNS);
        for (pair, (x, dots)) in pairs.zip(dots.chunks_mut(4)).enumerate() {
            prefetch_blocks(ahead, 2 * pair);
            let x = planes(avx512, x);
            let [a, b, c, d] = [
                half_sums(avx512, codes(avx512, weights[0], pair), x),
                half_sums(avx512, codes(avx512, weights[1], pair), x),
                half_sums(avx512, codes(avx512, weights[2], pair), x),
                half_sums(avx512, codes(avx512, weights[3], pair), x),
            ];
            let first = fold(avx512, [a[0], b[0], c[0], d[0]]);
            let second = fold(avx512, [a[1], b[1], c[1], d[1]]);
            // Both halves of the first block, then those of the second.
            let sums = both(avx512, first, second);
            let sums = _mm512_shuffle_i32x4::<0b11_01_10_00>(sums, sums);
            store_last(avx512, sums, dots);
        }
    }
);

fearless_simd::kernel!(
    #[inline]
    fn by_planes(
        avx512: Avx512,
        weights: [&[u8]; 4],
        ahead: [&[u8]; 4],
        x: &[i8],
        dots: &mut [[i32; 4]],
    ) {
        let pairs = x.chunks(2 * BLOCK_COLUMNS);
        for (pair, (x, dots)) in pairs.zip(dots.chunks_mut(8)).enumerate() {
            prefetch_blocks(ahead, 2 * pair);
            let x = planes(avx512, x);
            let [a, b, c, d] = [
                plane_sums(avx512, codes(avx512, weights[0], pair), x),
                plane_sums(avx512, codes(avx512, weights[1], pair), x),
                plane_sums(avx512, codes(avx512, weights[2], pair), x),
                plane_sums(avx512, codes(avx512, weights[3], pair), x),
            ];
            let mut folded = [_mm512_setzero_si512(); 4];
            for plane in 0..4 {
                folded[plane] = fold(avx512, [a[plane], b[plane], c[plane], d[plane]]);
            }
            let low = both(avx512, folded[0], folded[1]);
            let high = both(avx512, folded[2], folded[3]);
            let (first, second) = dots.split_at_mut(4);
            store_last(avx512, _mm512_shuffle_i32x4::<0b10_00_10_00>(low, high), first);
            store_last(avx512, _mm512_shuffle_i32x4::<0b11_01_11_01>(low, high), second);
        }
    }
);

fearless_simd::kernel!(
    /// The sums of a pair of blocks of a row, of its first two planes and of the others. Those are made 16
    /// times too large, so that one shift serves two planes.
    #[inline]
    fn half_sums(_avx512: Avx512, packed: __m512i, x: [__m512i; 4]) -> [__m512i; 2] {
        let (zero, shifted) = (_mm512_setzero_si512(), _mm512_srli_epi16::<2>(packed));
        let (low, high) = (_mm512_set1_epi8(0x03), _mm512_set1_epi8(0x30));
        let first = _mm512_dpbusd_epi32(zero, _mm512_and_si512(packed, low), x[0]);
        let second = _mm512_dpbusd_epi32(zero, _mm512_and_si512(packed, high), x[2]);
        let first = _mm512_dpbusd_epi32(first, _mm512_and_si512(shifted, low), x[1]);
        let second = _mm512_dpbusd_epi32(second, _mm512_and_si512(shifted, high), x[3]);
        [first, _mm512_srai_epi32::<4>(second)]
    }
);

fearless_simd::kernel!(
    /// The same of each plane.
    #[inline]
    fn plane_sums(_avx512: Avx512, packed: __m512i, x: [__m512i; 4]) -> [__m512i; 4] {
        let masked = |mask: u8| _mm512_and_si512(packed, _mm512_set1_epi8(mask.cast_signed()));
        let zero = _mm512_setzero_si512();
        [
            _mm512_dpbusd_epi32(zero, masked(0x03), x[0]),
            _mm512_srai_epi32::<2>(_mm512_dpbusd_epi32(zero, masked(0x0c), x[1])),
            _mm512_srai_epi32::<4>(_mm512_dpbusd_epi32(zero, masked(0x30), x[2])),
            _mm512_srai_epi32::<6>(_mm512_dpbusd_epi32(zero, masked(0xc0), x[3])),
        ]
    }
);

fearless_simd::kernel!(
    /// From sums of four rows to four parts of each row's sum, `[a b c d]`: two of the first block,
    /// then two of the second.
    #[inline]
    fn fold(_avx512: Avx512, rows: [__m512i; 4]) -> __m512i {
        let [a, b, c, d] = rows;
        let ab = _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
        let cd = _mm512_add_epi32(_mm512_unpacklo_epi32(c, d), _mm512_unpackhi_epi32(c, d));
        _mm512_add_epi32(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd))
    }
);

fearless_simd::kernel!(
    /// Adds the parts of two folds: the blocks of the first, then those of the second.
    #[inline]
    fn both(_avx512: Avx512, first: __m512i, second: __m512i) -> __m512i {
        _mm512_add_epi32(
            _mm512_shuffle_i32x4::<0b10_00_10_00>(first, second),
            _mm512_shuffle_i32x4::<0b11_01_11_01>(first, second),
        )
    }
);

fearless_simd::kernel!(
    /// Stores the sums of up to four runs.
    #[inline]
    fn store_last(avx512: Avx512, sums: __m512i, dots: &mut [[i32; 4]]) {
        match dots.as_flattened_mut() {
            [] => {}
            dots if dots.len() == 4 => {
                i32x4::simd_from(avx512, _mm512_castsi512_si128(sums)).store_slice(dots);
            }
            dots if dots.len() == 8 => {
                i32x8::simd_from(avx512, _mm512_castsi512_si256(sums)).store_slice(dots);
            }
            dots => i32x16::simd_from(avx512, sums).store_slice(dots),
        }
    }
);
