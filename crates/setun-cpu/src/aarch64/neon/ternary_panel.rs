//! NEON twin of [`ternary_panel`](crate::ternary_panel).
//!
//! Four vectors of four outputs meet up to three rows: 24 sums stay in registers, beside four
//! vectors of codes and one of activations. `smlal` multiplies eight codes with activations and
//! adds the products to lanes of 16 bits, which take those of 64 quads, at most
//! `64 × 2 × 128 = 16,384`; a panel is as long.

use std::arch::aarch64::{
    int8x16_t, int16x8_t, int32x4_t, uint8x16_t, vandq_u8, vdupq_n_s16, vdupq_n_s32, vdupq_n_u8,
    vget_low_s8, vmlal_high_s8, vmlal_s8, vpaddlq_s16, vpaddq_s32, vreinterpretq_s8_s32,
    vreinterpretq_s8_u8, vreinterpretq_s32_u8, vreinterpretq_s64_s32, vreinterpretq_u8_s64,
    vshrq_n_u8, vzip1q_s32, vzip1q_s64, vzip2q_s32, vzip2q_s64,
};

use fearless_simd::{aarch64::Neon, i32x4, prelude::*, u8x16};
use setun_ops::ternary::{BLOCK_BYTES, PLANE_COLUMNS};

use crate::ternary_panel::{BLOCK_QUADS, Four, PanelSums, Quad, TernaryPanel, UNPACKED_ROWS};

/// Bytes of a vector.
const BYTES: usize = 16;

/// Outputs of a vector.
const LANES: usize = 4;

/// Vectors of outputs of a quad.
const VECTORS: usize = 16;

/// Vectors of outputs at once.
const TILE: usize = 4;

/// Quads whose 16-bit sums cannot overflow.
const QUADS: usize = 64;

impl TernaryPanel for Neon {
    const FEWEST_ROWS: usize = 16;
    const BLOCKS: usize = QUADS / BLOCK_QUADS;
    const ROWS: usize = 3;

    fn unpack_rows(self, rows: [&[u8]; UNPACKED_ROWS], first: usize, panel: &mut [Quad]) {
        let (fours, _) = rows.as_chunks::<LANES>();
        for (index, &rows) in fours.iter().enumerate() {
            four_rows(self, rows, first + LANES * index, panel);
        }
    }

    fn add_rows(self, panel: &[Quad], x: &[&[Four]], sums: &mut [PanelSums]) {
        match *x {
            [] => {}
            [a] => add_one(self, panel, [a], sums),
            [a, b] => add_two(self, panel, [a, b], sums),
            [a, b, c, ..] => add_three(self, panel, [a, b, c], sums),
        }
    }
}

/// A kernel for so many rows. (Kernels cannot be generic.)
macro_rules! rows {
    ($name:ident, $rows:literal) => {
        fearless_simd::kernel!(
            #[inline]
            fn $name(
                neon: Neon,
                panel: &[Quad],
                x: [&[Four]; $rows],
                panel_sums: &mut [PanelSums],
            ) {
                let panel = &panel[..panel.len().min(QUADS)];
                let x = x.map(|row| &row[..panel.len()]);
                for tile in 0..VECTORS / TILE {
                    let mut sums = [[[vdupq_n_s16(0); 2]; TILE]; $rows];
                    for (index, quad) in panel.iter().enumerate() {
                        let codes = codes(neon, quad, tile);
                        for row in 0..$rows {
                            let x = splat(neon, x[row][index]);
                            for vector in 0..TILE {
                                sums[row][vector] = add(neon, sums[row][vector], codes[vector], x);
                            }
                        }
                    }
                    for (sums, panel_sums) in sums.into_iter().zip(&mut *panel_sums) {
                        let (lanes, _) = panel_sums.0.as_chunks_mut::<LANES>();
                        for (sums, lanes) in sums.into_iter().zip(&mut lanes[TILE * tile..]) {
                            add_lanes(neon, fours(neon, sums), lanes);
                        }
                    }
                }
            }
        );
    };
}

rows!(add_one, 1);
rows!(add_two, 2);
rows!(add_three, 3);

fearless_simd::kernel!(
    #[inline]
    fn codes(neon: Neon, quad: &Quad, tile: usize) -> [int8x16_t; TILE] {
        let (vectors, _) = quad.0.as_chunks::<BYTES>();
        std::array::from_fn(|index| {
            vreinterpretq_s8_u8(u8x16::from_slice(neon, &vectors[TILE * tile + index]).into())
        })
    }
);

fearless_simd::kernel!(
    #[inline]
    fn splat(_neon: Neon, x: Four) -> int8x16_t {
        vreinterpretq_s8_s32(vdupq_n_s32(i32::from_le_bytes(x.map(i8::cast_unsigned))))
    }
);

fearless_simd::kernel!(
    /// Adds the products of four columns of two outputs, and of two more.
    #[inline]
    fn add(_neon: Neon, sums: [int16x8_t; 2], codes: int8x16_t, x: int8x16_t) -> [int16x8_t; 2] {
        let [low, high] = sums;
        [vmlal_s8(low, vget_low_s8(codes), vget_low_s8(x)), vmlal_high_s8(high, codes, x)]
    }
);

fearless_simd::kernel!(
    /// The sums of four neighbouring lanes.
    #[inline]
    fn fours(_neon: Neon, sums: [int16x8_t; 2]) -> int32x4_t {
        let [low, high] = sums;
        vpaddq_s32(vpaddlq_s16(low), vpaddlq_s16(high))
    }
);

/// Adds sums to those of four outputs.
#[inline(always)]
pub(in crate::aarch64) fn add_lanes(neon: Neon, sums: int32x4_t, lanes: &mut [i32; LANES]) {
    let total = i32x4::from_slice(neon, lanes) + i32x4::simd_from(neon, sums);
    total.store_slice(lanes);
}

fearless_simd::kernel!(
    #[inline]
    fn four_rows(neon: Neon, rows: [&[u8]; 4], first: usize, panel: &mut [Quad]) {
        for (block, panel) in panel.chunks_exact_mut(BLOCK_QUADS).enumerate() {
            for half in 0..2 {
                let rows = rows.map(|row| -> uint8x16_t {
                    let bytes = &row[block * BLOCK_BYTES..][..BLOCK_BYTES];
                    u8x16::from_slice(neon, &bytes.as_chunks::<BYTES>().0[half]).into()
                });
                for (at, packed) in transpose(neon, rows).into_iter().enumerate() {
                    let at = 4 * half + at;
                    for (plane, codes) in planes(neon, packed).into_iter().enumerate() {
                        let quad = &mut panel[plane * (PLANE_COLUMNS / 4) + at];
                        u8x16::simd_from(neon, codes)
                            .store_slice(&mut quad.0[4 * first..][..BYTES]);
                    }
                }
            }
        }
    }
);

fearless_simd::kernel!(
    /// The codes of each plane of packed ones.
    #[inline]
    pub(in crate::aarch64) fn planes(_neon: Neon, packed: uint8x16_t) -> [uint8x16_t; 4] {
        let low_bits = vdupq_n_u8(0b11);
        [
            vandq_u8(packed, low_bits),
            vandq_u8(vshrq_n_u8::<2>(packed), low_bits),
            vandq_u8(vshrq_n_u8::<4>(packed), low_bits),
            vshrq_n_u8::<6>(packed),
        ]
    }
);

fearless_simd::kernel!(
    /// Dword `j` of vector `i` goes to dword `i` of vector `j`.
    #[inline]
    fn transpose(_neon: Neon, rows: [uint8x16_t; 4]) -> [uint8x16_t; 4] {
        let [a, b, c, d] = rows.map(|row| vreinterpretq_s32_u8(row));
        let [low, high] =
            [[vzip1q_s32(a, b), vzip1q_s32(c, d)], [vzip2q_s32(a, b), vzip2q_s32(c, d)]]
                .map(|pair| pair.map(|rows| vreinterpretq_s64_s32(rows)));
        [
            vzip1q_s64(low[0], low[1]),
            vzip2q_s64(low[0], low[1]),
            vzip1q_s64(high[0], high[1]),
            vzip2q_s64(high[0], high[1]),
        ]
        .map(|fours| vreinterpretq_u8_s64(fours))
    }
);
