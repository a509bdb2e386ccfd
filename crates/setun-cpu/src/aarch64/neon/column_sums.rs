//! NEON version of [`setun_ops::column_sums`], of all levels of NEON.
//!
//! Half a block of each column is loaded at a time: 16 bytes hold 64 codes, 16 of each plane, of
//! neighbouring outputs. Products of eight columns come together in 16 bits: at most
//! `8 × 2 × 128 = 2048`.

use std::arch::aarch64::{
    int8x16_t, int16x8_t, int32x4_t, uint8x16_t, vaddw_high_s16, vaddw_s16, vandq_u8, vdupq_n_s8,
    vdupq_n_s16, vdupq_n_u8, vget_low_s8, vget_low_s16, vmlal_high_s8, vmlal_s8,
    vreinterpretq_s8_u8, vshrq_n_u8,
};

use fearless_simd::{aarch64::Neon, i32x4, prelude::*, u8x16};
use setun_ops::ternary::{BLOCK_BYTES, BLOCK_COLUMNS, PLANE_COLUMNS};

use crate::column_sums::{ColumnSums, Columns, Inputs};

/// Bytes of a vector.
const BYTES: usize = 16;

/// Outputs of a vector of sums.
const LANES: usize = 4;

impl ColumnSums for Neon {
    fn add_columns(self, columns: Columns<'_>, _ahead: Columns<'_>, x: Inputs, sums: &mut [i32]) {
        eight_columns(self, columns, x, sums);
    }

    fn place(self, output: usize) -> (usize, u32) {
        (output, 0)
    }

    /// The instruction is not stable in Rust yet.
    fn prefetch(self, _: &[u8]) {}
}

fearless_simd::kernel!(
    #[inline]
    fn eight_columns(neon: Neon, columns: [&[u8]; 8], activations: [i8; 8], sums: &mut [i32]) {
        let x = activations.map(|x| vdupq_n_s8(x));
        let blocks = columns[0].len() / BLOCK_BYTES;
        for (block, sums) in sums.chunks_exact_mut(BLOCK_COLUMNS).take(blocks).enumerate() {
            for half in [0, BYTES] {
                let mut packed = columns.map(|column| -> uint8x16_t {
                    u8x16::from_slice(neon, &column[block * BLOCK_BYTES + half..][..BYTES]).into()
                });
                for plane in sums.chunks_exact_mut(PLANE_COLUMNS) {
                    let products = products(neon, packed, x);
                    packed = packed.map(|codes| vshrq_n_u8::<2>(codes));
                    add(neon, products, &mut plane[half..][..BYTES]);
                }
            }
        }
    }
);

fearless_simd::kernel!(
    /// Sums of the products of the lowest planes of eight columns.
    #[inline]
    fn products(_neon: Neon, packed: [uint8x16_t; 8], x: [int8x16_t; 8]) -> [int16x8_t; 2] {
        let low_bits = vdupq_n_u8(0b11);
        let (mut low, mut high) = (vdupq_n_s16(0), vdupq_n_s16(0));
        for (packed, x) in packed.into_iter().zip(x) {
            let codes = vreinterpretq_s8_u8(vandq_u8(packed, low_bits));
            low = vmlal_s8(low, vget_low_s8(codes), vget_low_s8(x));
            high = vmlal_high_s8(high, codes, x);
        }
        [low, high]
    }
);

fearless_simd::kernel!(
    /// `sums += products` for 16 outputs.
    #[inline]
    fn add(neon: Neon, products: [int16x8_t; 2], sums: &mut [i32]) {
        let (vectors, _) = sums.as_chunks_mut::<LANES>();
        for (sums, products) in vectors.chunks_exact_mut(2).zip(products) {
            let [low, high] =
                [0, 1].map(|at| -> int32x4_t { i32x4::from_slice(neon, &sums[at]).into() });
            let added = [vaddw_s16(low, vget_low_s16(products)), vaddw_high_s16(high, products)];
            for (sums, added) in sums.iter_mut().zip(added) {
                i32x4::simd_from(neon, added).store_slice(sums);
            }
        }
    }
);
