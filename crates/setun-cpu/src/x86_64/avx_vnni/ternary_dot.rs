//! AVX-VNNI twin of [`setun_ops::ternary_dot()`].
//!
//! A load brings 128 codes of a row. `vpdpbusd` multiplies unsigned with signed bytes and adds
//! four neighbours to 32 bits. For one row of activations every second plane stays where it is:
//! its products are 16 times too large, and their sums, kept apart, are divided exactly at the
//! end. (Four sums a row, as in AVX-512, would not leave a register for the activations.) A lane
//! stays in 32 bits up to `2^31 / (2 × 4 × 32 × 128)` blocks, 8 million columns.

#![expect(unsafe_code, reason = "functions for a feature that no token of a dependency proves")]

use std::arch::x86_64::{
    __m256i, _mm256_add_epi32, _mm256_and_si256, _mm256_dpbusd_avx_epi32, _mm256_set1_epi8,
    _mm256_setzero_si256, _mm256_srai_epi32, _mm256_srli_epi16,
};

use fearless_simd::{i8x32, prelude::*, u8x32, x86::Avx2};
use setun_ops::ternary::{BLOCK_BYTES, BLOCK_COLUMNS, PLANE_COLUMNS};

use super::AvxVnni;
use crate::ternary_dot::{TILE_OUTPUTS, TILE_ROWS, TernaryDot};
use crate::x86_64::avx2::ternary_dot::add_lanes;

impl TernaryDot for AvxVnni {
    type Lanes = Avx2;

    fn lanes(self) -> Avx2 {
        self.0
    }

    fn code_dots(self, weights: [&[u8]; TILE_OUTPUTS], x: &[i8]) -> [i32; TILE_OUTPUTS] {
        // SAFETY: `self` exists only where the feature was detected.
        unsafe { four_rows(self.0, weights, x) }
    }

    fn code_dots_wide(
        self,
        [a, b, c, d]: [&[u8]; TILE_OUTPUTS],
        x: [&[i8]; TILE_ROWS],
    ) -> [[i32; TILE_OUTPUTS]; TILE_ROWS] {
        // Two rows at a time: sixteen sums would not leave a register for the codes.
        // SAFETY: as above.
        let [upper, lower] = [[a, b], [c, d]].map(|rows| unsafe { two_rows_wide(self.0, rows, x) });
        std::array::from_fn(|row| [upper[0][row], upper[1][row], lower[0][row], lower[1][row]])
    }
}

#[target_feature(enable = "avxvnni")]
fn four_rows(avx2: Avx2, weights: [&[u8]; 4], x: &[i8]) -> [i32; 4] {
    let masks = [0x03, 0x30].map(|mask| _mm256_set1_epi8(mask));
    let weights = weights.map(|row| &row[..x.len() / 4]);
    let mut sums = [[_mm256_setzero_si256(); 2]; 4]; // [row][scale of the sum: 1, 16]
    for (block, x) in x.chunks_exact(BLOCK_COLUMNS).enumerate() {
        let x: [__m256i; 4] =
            std::array::from_fn(|plane| activations(avx2, &x[plane * PLANE_COLUMNS..]));
        for (sums, row) in sums.iter_mut().zip(&weights) {
            let packed = codes(avx2, &row[block * BLOCK_BYTES..]);
            let shifted = _mm256_srli_epi16::<2>(packed);
            for (index, (sum, mask)) in sums.iter_mut().zip(masks).enumerate() {
                let even = _mm256_and_si256(packed, mask);
                let odd = _mm256_and_si256(shifted, mask);
                *sum = _mm256_dpbusd_avx_epi32(*sum, even, x[2 * index]);
                *sum = _mm256_dpbusd_avx_epi32(*sum, odd, x[2 * index + 1]);
            }
        }
    }
    let sums = sums.map(|[by_1, by_16]| _mm256_add_epi32(by_1, _mm256_srai_epi32::<4>(by_16)));
    add_lanes(avx2, sums)
}

#[target_feature(enable = "avxvnni")]
fn two_rows_wide(avx2: Avx2, weights: [&[u8]; 2], x: [&[i8]; 4]) -> [[i32; 4]; 2] {
    let low_bits = _mm256_set1_epi8(0b11);
    let columns = x[0].len();
    let x = x.map(|x| &x[..columns]);
    let weights = weights.map(|row| &row[..columns / 4]);
    let mut sums = [[_mm256_setzero_si256(); 4]; 2]; // [row of weights][row of x]
    for block in 0..columns / BLOCK_COLUMNS {
        let mut packed = weights.map(|row| codes(avx2, &row[block * BLOCK_BYTES..]));
        for plane in 0..4 {
            let at = block * BLOCK_COLUMNS + plane * PLANE_COLUMNS;
            let codes = packed.map(|row| _mm256_and_si256(row, low_bits));
            packed = packed.map(|row| _mm256_srli_epi16::<2>(row));
            for (column, x) in x.iter().enumerate() {
                let x = activations(avx2, &x[at..]);
                for (sums, codes) in sums.iter_mut().zip(codes) {
                    sums[column] = _mm256_dpbusd_avx_epi32(sums[column], codes, x);
                }
            }
        }
    }
    sums.map(|sums| add_lanes(avx2, sums))
}

/// The codes of a block.
#[inline(always)]
fn codes(avx2: Avx2, packed: &[u8]) -> __m256i {
    u8x32::from_slice(avx2, &packed[..BLOCK_BYTES]).into()
}

/// The activations of a plane.
#[inline(always)]
fn activations(avx2: Avx2, x: &[i8]) -> __m256i {
    i8x32::from_slice(avx2, &x[..PLANE_COLUMNS]).into()
}
