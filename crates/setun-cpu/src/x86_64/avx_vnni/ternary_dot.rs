//! AVX-VNNI version of [`setun_ops::ternary_dot()`].
//!
//! A load brings 128 codes of a row. `vpdpbusd` multiplies unsigned with signed bytes and adds
//! four neighbours to 32 bits. For one row of activations, two planes are masked where they are
//! and the two others after one shift. Products of the upper ones are 16 times too large, and
//! their sums, kept apart, are divided exactly at the end. (Four sums a row, as in AVX-512, would
//! not leave a register for the activations.) A lane stays in 32 bits up to
//! `2^31 / (2 × 4 × 32 × 128)` blocks, 8 million columns.

#![expect(unsafe_code, reason = "functions for a feature that no token of a dependency proves")]

use std::arch::x86_64::{
    __m256i, _mm256_add_epi32, _mm256_and_si256, _mm256_dpbusd_avx_epi32, _mm256_set1_epi8,
    _mm256_setzero_si256, _mm256_srai_epi32, _mm256_srli_epi16,
};

use fearless_simd::x86::Avx2;
use setun_ops::ternary::BLOCK_COLUMNS;

use super::{
    AvxVnni,
    blocks::{activations, add_planes, codes},
    run_dots::run_dots,
};
use crate::ternary_dot::{
    CodeDots, CodeRows, TernaryDot, WideDots, WideRows, activation_blocks, code_blocks,
};
use crate::x86_64::{avx2::ternary_dot::add_lanes, prefetch::tiles_ahead, prefetch_blocks};

impl TernaryDot for AvxVnni {
    type Lanes = Avx2;
    type Columns = Avx2;

    fn lanes(self) -> Avx2 {
        self.0
    }

    fn columns(self) -> Avx2 {
        self.0
    }

    fn tiles_ahead(self) -> usize {
        tiles_ahead()
    }

    fn code_dots(self, weights: CodeRows<'_>, ahead: CodeRows<'_>, x: &[i8]) -> CodeDots {
        // SAFETY: `self` exists only where the feature was detected.
        unsafe { four_rows(self.0, weights, ahead, x) }
    }

    fn run_dots(
        self,
        weights: CodeRows<'_>,
        ahead: CodeRows<'_>,
        x: &[i8],
        run: usize,
        dots: &mut [CodeDots],
    ) {
        run_dots(self, weights, ahead, x, run, dots);
    }

    fn code_dots_wide(
        self,
        [a, b, c, d]: CodeRows<'_>,
        [a_ahead, b_ahead, c_ahead, d_ahead]: CodeRows<'_>,
        x: WideRows<'_>,
    ) -> WideDots {
        // Two rows at a time: sixteen sums would not leave a register for the codes.
        // SAFETY: as above.
        let [upper, lower] = [[a, b, a_ahead, b_ahead], [c, d, c_ahead, d_ahead]]
            .map(|[a, b, c, d]| unsafe { two_rows_wide(self.0, [a, b], [c, d], x) });
        std::array::from_fn(|row| [upper[0][row], upper[1][row], lower[0][row], lower[1][row]])
    }
}

#[target_feature(enable = "avxvnni")]
fn four_rows(avx2: Avx2, weights: [&[u8]; 4], ahead: [&[u8]; 4], x: &[i8]) -> [i32; 4] {
    let (x, _) = x.as_chunks();
    let weights = code_blocks(weights, x.len());
    let [mut a, mut b, mut c, mut d] = [[_mm256_setzero_si256(); 2]; 4];
    for (block, x) in x.iter().enumerate() {
        prefetch_blocks(ahead, block);
        let x = std::array::from_fn(|plane| activations(avx2, x, plane));
        a = add_planes(a, codes(avx2, &weights[0][block]), x);
        b = add_planes(b, codes(avx2, &weights[1][block]), x);
        c = add_planes(c, codes(avx2, &weights[2][block]), x);
        d = add_planes(d, codes(avx2, &weights[3][block]), x);
    }
    let sums =
        [a, b, c, d].map(|[by_1, by_16]| _mm256_add_epi32(by_1, _mm256_srai_epi32::<4>(by_16)));
    add_lanes(avx2, sums)
}

#[target_feature(enable = "avxvnni")]
fn two_rows_wide(
    avx2: Avx2,
    weights: [&[u8]; 2],
    ahead: [&[u8]; 2],
    x: [&[i8]; 4],
) -> [[i32; 4]; 2] {
    let low_bits = _mm256_set1_epi8(0b11);
    let blocks = x[0].len() / BLOCK_COLUMNS;
    let x = activation_blocks(x, blocks);
    let weights = code_blocks(weights, blocks);
    let [mut upper, mut lower] = [[_mm256_setzero_si256(); 4]; 2]; // a row of weights each
    for block in 0..blocks {
        prefetch_blocks(ahead, block);
        let [mut a, mut b] = [codes(avx2, &weights[0][block]), codes(avx2, &weights[1][block])];
        for plane in 0..4 {
            let x = std::array::from_fn(|row| activations(avx2, &x[row][block], plane));
            upper = add_columns(upper, _mm256_and_si256(a, low_bits), x);
            lower = add_columns(lower, _mm256_and_si256(b, low_bits), x);
            a = _mm256_srli_epi16::<2>(a);
            b = _mm256_srli_epi16::<2>(b);
        }
    }
    [upper, lower].map(|sums| add_lanes(avx2, sums))
}

/// Adds the products of a plane of a row with four rows of activations.
#[target_feature(enable = "avxvnni")]
#[inline]
fn add_columns(sums: [__m256i; 4], codes: __m256i, x: [__m256i; 4]) -> [__m256i; 4] {
    [
        _mm256_dpbusd_avx_epi32(sums[0], codes, x[0]),
        _mm256_dpbusd_avx_epi32(sums[1], codes, x[1]),
        _mm256_dpbusd_avx_epi32(sums[2], codes, x[2]),
        _mm256_dpbusd_avx_epi32(sums[3], codes, x[3]),
    ]
}
