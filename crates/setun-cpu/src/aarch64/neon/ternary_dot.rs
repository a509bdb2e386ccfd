//! NEON version of [`setun_ops::ternary_dot()`].
//!
//! Half a block is loaded at a time: 16 bytes hold 64 codes, 16 of each plane. `smlal` multiplies
//! eight codes with activations and adds the products to lanes of 16 bits, where sums wrap: a
//! product is at most `2 × 128 = 256`, and a lane takes 16 of them from a block, so the sums are
//! widened every [`BLOCKS`] blocks.

use std::arch::aarch64::{
    vandq_u8, vdupq_n_s16, vdupq_n_s32, vdupq_n_u8, vget_low_s8, vmlal_high_s8, vmlal_s8,
    vpadalq_s16, vreinterpretq_s8_u8, vshrq_n_u8,
};

use fearless_simd::aarch64::Neon;
use setun_ops::ternary::BLOCK_COLUMNS;

use super::run_dots::run_dots;
use crate::aarch64::vectors::{activations, add_lanes, codes};
use crate::ternary_dot::{
    CodeDots, CodeRows, TernaryDot, WideDots, WideRows, activation_blocks, code_blocks,
};

/// Blocks whose 16-bit sums cannot wrap: `7 × 16 × 256 = 28,672`.
const BLOCKS: usize = 7;

impl TernaryDot for Neon {
    type Lanes = Self;
    type Columns = Self;

    fn lanes(self) -> Self {
        self
    }

    fn columns(self) -> Self {
        self
    }

    fn code_dots(self, weights: CodeRows<'_>, _ahead: CodeRows<'_>, x: &[i8]) -> CodeDots {
        four_rows(self, weights, x)
    }

    fn run_dots(
        self,
        weights: CodeRows<'_>,
        _ahead: CodeRows<'_>,
        x: &[i8],
        run: usize,
        dots: &mut [CodeDots],
    ) {
        run_dots(self, weights, x, run, dots);
    }

    fn code_dots_wide(
        self,
        weights: CodeRows<'_>,
        _ahead: CodeRows<'_>,
        x: WideRows<'_>,
    ) -> WideDots {
        four_rows_wide(self, weights, x)
    }
}

fearless_simd::kernel!(
    #[inline]
    fn four_rows(neon: Neon, weights: [&[u8]; 4], x: &[i8]) -> [i32; 4] {
        let [sums] = tile(neon, weights, [x]);
        sums
    }
);

fearless_simd::kernel!(
    #[inline]
    fn four_rows_wide(neon: Neon, weights: [&[u8]; 4], x: [&[i8]; 4]) -> [[i32; 4]; 4] {
        tile(neon, weights, x)
    }
);

#[target_feature(enable = "neon")]
#[inline]
fn tile<const ROWS: usize>(neon: Neon, weights: [&[u8]; 4], x: [&[i8]; ROWS]) -> [[i32; 4]; ROWS] {
    let low_bits = vdupq_n_u8(0b11);
    let blocks = x[0].len() / BLOCK_COLUMNS;
    let x = activation_blocks(x, blocks);
    let weights = code_blocks(weights, blocks);
    let mut sums = [[vdupq_n_s32(0); 4]; ROWS]; // [row of x][row of weights]
    for run in (0..blocks).step_by(BLOCKS) {
        let mut run_sums = [[vdupq_n_s16(0); 4]; ROWS];
        for block in run..blocks.min(run + BLOCKS) {
            for half in 0..2 {
                let mut packed = weights.map(|row| codes(neon, &row[block], half));
                for plane in 0..4 {
                    let codes = packed.map(|row| vreinterpretq_s8_u8(vandq_u8(row, low_bits)));
                    packed = packed.map(|row| vshrq_n_u8::<2>(row));
                    for (sums, x) in run_sums.iter_mut().zip(x) {
                        let x = activations(neon, &x[block], plane, half);
                        for (sum, codes) in sums.iter_mut().zip(codes) {
                            *sum = vmlal_s8(*sum, vget_low_s8(codes), vget_low_s8(x));
                            *sum = vmlal_high_s8(*sum, codes, x);
                        }
                    }
                }
            }
        }
        for (sums, run_sums) in sums.iter_mut().zip(run_sums) {
            for (sum, run_sum) in sums.iter_mut().zip(run_sums) {
                *sum = vpadalq_s16(*sum, run_sum);
            }
        }
    }
    sums.map(|sums| add_lanes(neon, sums))
}
