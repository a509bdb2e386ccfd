//! AVX-512 version of [`run_dots`](crate::ternary_dot::TernaryDot::run_dots).
//!
//! As [`ternary_dot`](super::ternary_dot) for one row of activations, but sums end with a run of
//! columns: a load brings two blocks, whose sums keep a half of the vector each. A plane is taken out
//! by an affine map of its bits, which is a shift and a mask in one. Sums of four rows are put
//! together in 16 bits: those of a block lie within `2 × 128 × 128 = 2^15`, and none is of more than
//! half a block before they are 32 bits wide.

use std::arch::x86_64::{
    __m512i, _mm512_add_epi16, _mm512_and_si512, _mm512_dpbusd_epi32,
    _mm512_gf2p8affine_epi64_epi8, _mm512_madd_epi16, _mm512_packs_epi32, _mm512_set1_epi8,
    _mm512_set1_epi16, _mm512_set1_epi64, _mm512_setzero_si512, _mm512_shuffle_i32x4,
};

use fearless_simd::{i32x16, prelude::*, u8x64, x86::Avx512};
use setun_ops::ternary::{BLOCK_COLUMNS, PLANE_COLUMNS};

use super::blocks::{PAIR_BYTES, planes};
use crate::{
    ternary_dot::{CodeDots, CodeRows, TILE_OUTPUTS},
    x86_64::prefetch::Requests,
};

/// Columns of a pair of blocks.
const PAIR_COLUMNS: usize = 2 * BLOCK_COLUMNS;

/// Bytes of a step, which is two pairs of blocks.
const STEP_BYTES: usize = 2 * PAIR_BYTES;

/// Columns of a step.
const STEP_COLUMNS: usize = 2 * PAIR_COLUMNS;

/// The most runs of a step.
const STEP_RUNS: usize = STEP_COLUMNS / PLANE_COLUMNS;

/// Packed codes of a pair of blocks.
type Pair = [u8; PAIR_BYTES];

/// Sums of four runs, which fill a vector.
type FourDots = [CodeDots; 4];

/// Sums of four rows, of each run of columns.
pub(super) fn run_dots(
    avx512: Avx512,
    weights: CodeRows<'_>,
    ahead: CodeRows<'_>,
    x: &[i8],
    run: usize,
    dots: &mut [CodeDots],
) {
    let (whole, last) = x.split_at(x.len() / STEP_COLUMNS * STEP_COLUMNS);
    let (dots, last_dots) = dots[..x.len() / run].split_at_mut(whole.len() / run);
    steps(avx512, weights, ahead, whole, run, dots);
    if !last.is_empty() {
        let at = whole.len() / 4;
        let [weights, ahead] = [weights, ahead].map(|rows| rows.map(|row| &row[at..]));
        last_step(avx512, weights, ahead, last, run, last_dots);
    }
}

/// Sums of the last columns, fewer than a step has, padded with zeros.
fn last_step(
    avx512: Avx512,
    weights: CodeRows<'_>,
    ahead: CodeRows<'_>,
    x: &[i8],
    run: usize,
    dots: &mut [CodeDots],
) {
    let mut codes = [[0; STEP_BYTES]; TILE_OUTPUTS];
    for (codes, row) in codes.iter_mut().zip(weights) {
        codes[..x.len() / 4].copy_from_slice(&row[..x.len() / 4]);
    }
    let mut padded = [0; STEP_COLUMNS];
    padded[..x.len()].copy_from_slice(x);
    let mut sums = [CodeDots::default(); STEP_RUNS];
    let weights = codes.each_ref().map(|row| &row[..]);
    steps(avx512, weights, ahead, &padded, run, &mut sums[..STEP_COLUMNS / run]);
    dots.copy_from_slice(&sums[..dots.len()]);
}

/// Sums of whole steps.
fn steps(
    avx512: Avx512,
    weights: CodeRows<'_>,
    ahead: CodeRows<'_>,
    x: &[i8],
    run: usize,
    dots: &mut [CodeDots],
) {
    match run {
        BLOCK_COLUMNS => whole_blocks(avx512, weights, ahead, x, dots),
        PLANE_COLUMNS => by_planes(avx512, weights, ahead, x, dots),
        _ => halves(avx512, weights, ahead, x, dots),
    }
}

fearless_simd::kernel!(
    #[inline]
    fn whole_blocks(
        avx512: Avx512,
        weights: [&[u8]; 4],
        ahead: [&[u8]; 4],
        x: &[i8],
        dots: &mut [[i32; 4]],
    ) {
        let requests = Requests::new();
        let (x, _) = x.as_chunks::<PAIR_COLUMNS>().0.as_chunks::<2>();
        let [a, b, c, d] = pairs(weights, 2 * x.len());
        let [a, b, c, d] = [a.as_chunks().0, b.as_chunks().0, c.as_chunks().0, d.as_chunks().0];
        let [a, b, c, d]: [&[[Pair; 2]]; 4] =
            [&a[..x.len()], &b[..x.len()], &c[..x.len()], &d[..x.len()]];
        let dots = &mut dots.as_chunks_mut().0[..x.len()];
        for step in 0..x.len() {
            requests.lines(ahead, step * STEP_BYTES);
            requests.lines(ahead, step * STEP_BYTES + PAIR_BYTES);
            let mut folded = [_mm512_setzero_si512(); 2];
            for pair in 0..2 {
                let x = planes(avx512, &x[step][pair]);
                let rows = [
                    whole_sums(avx512, &a[step][pair], x),
                    whole_sums(avx512, &b[step][pair], x),
                    whole_sums(avx512, &c[step][pair], x),
                    whole_sums(avx512, &d[step][pair], x),
                ];
                folded[pair] = fold(avx512, rows);
            }
            store(avx512, both(avx512, folded[0], folded[1]), &mut dots[step]);
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
        let requests = Requests::new();
        let (x, _) = x.as_chunks::<PAIR_COLUMNS>();
        let [a, b, c, d] = pairs(weights, x.len());
        let dots = &mut dots.as_chunks_mut().0[..x.len()];
        for pair in 0..x.len() {
            requests.lines(ahead, pair * PAIR_BYTES);
            let x = planes(avx512, &x[pair]);
            let [a, b, c, d] = [
                half_sums(avx512, &a[pair], x),
                half_sums(avx512, &b[pair], x),
                half_sums(avx512, &c[pair], x),
                half_sums(avx512, &d[pair], x),
            ];
            let first = fold(avx512, [a[0], b[0], c[0], d[0]]);
            let second = fold(avx512, [a[1], b[1], c[1], d[1]]);
            // Both halves of the first block, then those of the second.
            let sums = both(avx512, first, second);
            let sums = _mm512_shuffle_i32x4::<0b11_01_10_00>(sums, sums);
            store(avx512, sums, &mut dots[pair]);
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
        let requests = Requests::new();
        let (x, _) = x.as_chunks::<PAIR_COLUMNS>();
        let [a, b, c, d] = pairs(weights, x.len());
        let dots = &mut dots.as_chunks_mut().0.as_chunks_mut::<2>().0[..x.len()];
        for pair in 0..x.len() {
            requests.lines(ahead, pair * PAIR_BYTES);
            let x = planes(avx512, &x[pair]);
            let [a, b, c, d] = [
                plane_sums(avx512, &a[pair], x),
                plane_sums(avx512, &b[pair], x),
                plane_sums(avx512, &c[pair], x),
                plane_sums(avx512, &d[pair], x),
            ];
            let mut folded = [_mm512_setzero_si512(); 4];
            for plane in 0..4 {
                folded[plane] = fold(avx512, [a[plane], b[plane], c[plane], d[plane]]);
            }
            let low = both(avx512, folded[0], folded[1]);
            let high = both(avx512, folded[2], folded[3]);
            let [first, second] = &mut dots[pair];
            store(avx512, _mm512_shuffle_i32x4::<0b10_00_10_00>(low, high), first);
            store(avx512, _mm512_shuffle_i32x4::<0b11_01_11_01>(low, high), second);
        }
    }
);

/// The first `pairs` pairs of blocks of each row, as arrays, which need no check of bounds in a loop.
#[inline(always)]
fn pairs([a, b, c, d]: CodeRows<'_>, pairs: usize) -> [&[Pair]; TILE_OUTPUTS] {
    [
        &a.as_chunks().0[..pairs],
        &b.as_chunks().0[..pairs],
        &c.as_chunks().0[..pairs],
        &d.as_chunks().0[..pairs],
    ]
}

fearless_simd::kernel!(
    /// The sums of a pair of blocks of a row.
    #[inline]
    fn whole_sums(avx512: Avx512, pair: &Pair, x: [__m512i; 4]) -> __m512i {
        let codes = unpacked(avx512, pair);
        let sums = _mm512_dpbusd_epi32(_mm512_setzero_si512(), codes[0], x[0]);
        let sums = _mm512_dpbusd_epi32(sums, codes[1], x[1]);
        let sums = _mm512_dpbusd_epi32(sums, codes[2], x[2]);
        _mm512_dpbusd_epi32(sums, codes[3], x[3])
    }
);

fearless_simd::kernel!(
    /// The sums of the first two planes, and those of the last two.
    #[inline]
    fn half_sums(avx512: Avx512, pair: &Pair, x: [__m512i; 4]) -> [__m512i; 2] {
        let (codes, zero) = (unpacked(avx512, pair), _mm512_setzero_si512());
        [
            _mm512_dpbusd_epi32(_mm512_dpbusd_epi32(zero, codes[0], x[0]), codes[1], x[1]),
            _mm512_dpbusd_epi32(_mm512_dpbusd_epi32(zero, codes[2], x[2]), codes[3], x[3]),
        ]
    }
);

fearless_simd::kernel!(
    /// The sums of each plane.
    #[inline]
    fn plane_sums(avx512: Avx512, pair: &Pair, x: [__m512i; 4]) -> [__m512i; 4] {
        let (codes, zero) = (unpacked(avx512, pair), _mm512_setzero_si512());
        [
            _mm512_dpbusd_epi32(zero, codes[0], x[0]),
            _mm512_dpbusd_epi32(zero, codes[1], x[1]),
            _mm512_dpbusd_epi32(zero, codes[2], x[2]),
            _mm512_dpbusd_epi32(zero, codes[3], x[3]),
        ]
    }
);

fearless_simd::kernel!(
    /// The codes of each plane.
    #[inline]
    fn unpacked(avx512: Avx512, pair: &Pair) -> [__m512i; 4] {
        let packed: __m512i = u8x64::simd_from(avx512, *pair).into();
        [
            _mm512_and_si512(packed, _mm512_set1_epi8(0x03)),
            _mm512_gf2p8affine_epi64_epi8::<0>(packed, _mm512_set1_epi64(code_at(2))),
            _mm512_gf2p8affine_epi64_epi8::<0>(packed, _mm512_set1_epi64(code_at(4))),
            _mm512_gf2p8affine_epi64_epi8::<0>(packed, _mm512_set1_epi64(code_at(6))),
        ]
    }
);

/// The bit matrix that moves the two bits of a byte from `bit` on to its lowest places.
const fn code_at(bit: u32) -> i64 {
    (1 << bit << 56) | (2 << bit << 48)
}

fearless_simd::kernel!(
    /// From sums of four rows to four parts of each row's sum, `[a a b b c c d d]` in 16 bits: two
    /// of the first block, then two of the second.
    #[inline]
    fn fold(_avx512: Avx512, rows: [__m512i; 4]) -> __m512i {
        let [a, b, c, d] = rows;
        let ones = _mm512_set1_epi16(1);
        let ab = _mm512_madd_epi16(_mm512_packs_epi32(a, b), ones);
        let cd = _mm512_madd_epi16(_mm512_packs_epi32(c, d), ones);
        _mm512_packs_epi32(ab, cd)
    }
);

fearless_simd::kernel!(
    /// Adds the parts of two folds: the blocks of the first, then those of the second.
    #[inline]
    fn both(_avx512: Avx512, first: __m512i, second: __m512i) -> __m512i {
        let parts = _mm512_add_epi16(
            _mm512_shuffle_i32x4::<0b10_00_10_00>(first, second),
            _mm512_shuffle_i32x4::<0b11_01_11_01>(first, second),
        );
        _mm512_madd_epi16(parts, _mm512_set1_epi16(1))
    }
);

fearless_simd::kernel!(
    #[inline]
    fn store(avx512: Avx512, sums: __m512i, dots: &mut FourDots) {
        i32x16::simd_from(avx512, sums).store_slice(dots.as_flattened_mut());
    }
);
