//! NEON-dotprod version of [`ternary_panel`](crate::ternary_panel).
//!
//! Two vectors of four outputs meet up to eight rows: 16 sums stay in registers. `sdot` takes four
//! activations from any quarter of a vector, so a load of a row serves four quads, whose codes,
//! eight vectors, wait in registers for all rows.
//!
//! As in `ternary_dot`, the instruction is assembly, and sums are named one by one; so are vectors,
//! as a closure over an array of them can become a call for each.

#![expect(unsafe_code, reason = "an instruction without a stable intrinsic, and its feature")]

use std::arch::{
    aarch64::{
        int8x16_t, int32x4_t, uint8x16_t, vdupq_n_s32, vreinterpretq_s32_u8, vreinterpretq_s64_s32,
        vreinterpretq_u8_s64, vzip1q_s32, vzip1q_s64, vzip2q_s32, vzip2q_s64,
    },
    asm,
};

use fearless_simd::{aarch64::Neon, i8x16, prelude::*, u8x16};
use setun_ops::ternary::{BLOCK_BYTES, PLANE_COLUMNS};

use super::NeonDotprod;
use crate::{
    aarch64::vectors::{add_to, planes},
    ternary_panel::{BLOCK_QUADS, Four, PanelSums, Quad, TernaryPanel, UNPACKED_ROWS},
};

/// Bytes of a vector.
const BYTES: usize = 16;

/// Outputs of a vector.
const LANES: usize = 4;

/// Pairs of vectors of outputs of a quad.
const PAIRS: usize = 8;

/// Quads that a vector of activations serves.
const QUADS: usize = 4;

impl TernaryPanel for NeonDotprod {
    /// In the first-level cache while all rows pass.
    const BLOCKS: usize = 2;
    const ROWS: usize = 8;

    fn fewest_rows(_columns: usize) -> usize {
        6
    }

    fn unpack_rows(self, rows: [&[u8]; UNPACKED_ROWS], first: usize, panel: &mut [Quad]) {
        let (fours, _) = rows.as_chunks::<LANES>();
        for (index, &rows) in fours.iter().enumerate() {
            four_rows(self.0, rows, first + LANES * index, panel);
        }
    }

    fn add_rows(self, panel: &[Quad], x: &[&[Four]], sums: &mut [PanelSums]) {
        // SAFETY: `self` exists only where the feature was detected.
        unsafe {
            match x.len() {
                0 => {}
                1 => add_1(self.0, panel, x, sums),
                2 => add_2(self.0, panel, x, sums),
                3 => add_3(self.0, panel, x, sums),
                4 => add_4(self.0, panel, x, sums),
                5 => add_5(self.0, panel, x, sums),
                6 => add_6(self.0, panel, x, sums),
                7 => add_7(self.0, panel, x, sums),
                _ => add_8(self.0, panel, x, sums),
            }
        }
    }
}

/// A kernel for some rows, with a name for the sums of each.
macro_rules! rows {
    ($name:ident, $($sums:ident $row:literal),+) => {
        #[target_feature(enable = "neon,dotprod")]
        fn $name(neon: Neon, panel: &[Quad], x: &[&[Four]], panel_sums: &mut [PanelSums]) {
            let (panel, _) = panel.as_chunks::<QUADS>();
            let x = [$(&x[$row].as_chunks::<QUADS>().0[..panel.len()]),+];
            for pair in 0..PAIRS {
                $(let mut $sums = [vdupq_n_s32(0); 2];)+
                for (index, quads) in panel.iter().enumerate() {
                    let [p, q, r, s] = quads;
                    let codes = [
                        codes(neon, p, pair),
                        codes(neon, q, pair),
                        codes(neon, r, pair),
                        codes(neon, s, pair),
                    ];
                    $($sums = add_quads($sums, codes, activations(neon, &x[$row][index]));)+
                }
                $(
                    let (lanes, _) = panel_sums[$row].0.as_chunks_mut::<LANES>();
                    add_to(neon, &mut lanes[2 * pair], $sums[0]);
                    add_to(neon, &mut lanes[2 * pair + 1], $sums[1]);
                )+
            }
        }
    };
}

rows!(add_1, a 0);
rows!(add_2, a 0, b 1);
rows!(add_3, a 0, b 1, c 2);
rows!(add_4, a 0, b 1, c 2, d 3);
rows!(add_5, a 0, b 1, c 2, d 3, e 4);
rows!(add_6, a 0, b 1, c 2, d 3, e 4, f 5);
rows!(add_7, a 0, b 1, c 2, d 3, e 4, f 5, g 6);
rows!(add_8, a 0, b 1, c 2, d 3, e 4, f 5, g 6, h 7);

/// Two vectors of a quad.
#[inline(always)]
fn codes(neon: Neon, quad: &Quad, pair: usize) -> [uint8x16_t; 2] {
    let (vectors, _) = quad.0.as_chunks::<BYTES>();
    let (upper, lower) = (&vectors[2 * pair], &vectors[2 * pair + 1]);
    [u8x16::from_slice(neon, upper).into(), u8x16::from_slice(neon, lower).into()]
}

#[inline(always)]
fn activations(neon: Neon, x: &[Four; QUADS]) -> int8x16_t {
    i8x16::from_slice(neon, x.as_flattened()).into()
}

/// Adds the products of four quads of eight outputs with those of a row.
#[target_feature(enable = "neon,dotprod")]
#[inline]
fn add_quads(
    sums: [int32x4_t; 2],
    codes: [[uint8x16_t; 2]; QUADS],
    x: int8x16_t,
) -> [int32x4_t; 2] {
    let [p, q] = sums;
    let [p, q] = [dot4_by::<0>(p, codes[0][0], x), dot4_by::<0>(q, codes[0][1], x)];
    let [p, q] = [dot4_by::<1>(p, codes[1][0], x), dot4_by::<1>(q, codes[1][1], x)];
    let [p, q] = [dot4_by::<2>(p, codes[2][0], x), dot4_by::<2>(q, codes[2][1], x)];
    [dot4_by::<3>(p, codes[3][0], x), dot4_by::<3>(q, codes[3][1], x)]
}

/// Adds to each lane the products of the four codes there with a quarter of the activations;
/// codes below 128.
#[target_feature(enable = "neon,dotprod")]
#[inline]
fn dot4_by<const QUARTER: u8>(mut sums: int32x4_t, codes: uint8x16_t, x: int8x16_t) -> int32x4_t {
    // SAFETY: reads and writes the named registers alone; the function enables the feature.
    unsafe {
        asm!(
            "sdot {sums:v}.4s, {codes:v}.16b, {x:v}.4b[{quarter}]",
            sums = inout(vreg) sums, codes = in(vreg) codes, x = in(vreg) x,
            quarter = const QUARTER,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    sums
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
