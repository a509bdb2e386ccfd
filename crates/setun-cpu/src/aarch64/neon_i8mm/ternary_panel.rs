//! NEON-i8mm version of [`ternary_panel`](crate::ternary_panel).
//!
//! `smmla` multiplies eight columns of two outputs with those of two rows. So a panel holds eight
//! neighbouring columns side by side, which packed rows need only be interleaved for: an output
//! takes 8 bytes of the 512 of two quads. Four vectors of two outputs meet up to four pairs of
//! rows: 16 sums stay in registers. A row without a partner is its own.
//!
//! As in `ternary_dot`, the instruction is assembly, and sums are named one by one; so are vectors,
//! as a closure over an array of them can become a call for each.

#![expect(unsafe_code, reason = "a feature that no token of a dependency proves")]

use std::arch::aarch64::{
    int8x16_t, int32x4_t, uint8x16_t, vdupq_n_s32, vreinterpretq_s32_s64, vreinterpretq_s64_s32,
    vzip1q_s64, vzip2q_s64,
};

use fearless_simd::{aarch64::Neon, i8x16, prelude::*, u8x16};
use setun_ops::ternary::{BLOCK_BYTES, PLANE_COLUMNS};

use super::{
    NeonI8mm,
    ternary_dot::{dots_2x2, pair_activations, pair_codes},
};
use crate::{
    aarch64::vectors::{add_to, planes},
    ternary_dot::TernaryDot,
    ternary_panel::{BLOCK_QUADS, Four, PanelSums, Quad, TernaryPanel, UNPACKED_ROWS},
};

/// Bytes of a vector.
const BYTES: usize = 16;

/// Outputs of a vector of sums.
const LANES: usize = 4;

/// Runs of eight outputs of a panel.
const RUNS: usize = 8;

/// Runs of eight outputs in one quad's memory, which has eight columns of half a panel.
const RUNS_OF_QUAD: usize = RUNS / 2;

/// Quads that a vector of activations serves.
const QUADS: usize = 4;

impl TernaryPanel for NeonI8mm {
    /// In the first-level cache while all rows pass.
    const BLOCKS: usize = 2;
    const ROWS: usize = 8;
    #[cfg(any(test, feature = "testing"))]
    const COLUMNS: usize = 8;

    fn fewest_rows(_columns: usize) -> usize {
        5
    }

    fn unpack_rows(self, rows: [&[u8]; UNPACKED_ROWS], first: usize, panel: &mut [Quad]) {
        let (pairs, _) = rows.as_chunks::<2>();
        for (index, &rows) in pairs.iter().enumerate() {
            two_rows(self.lanes(), rows, first + 2 * index, panel);
        }
    }

    fn add_rows(self, panel: &[Quad], x: &[&[Four]], sums: &mut [PanelSums]) {
        let neon = self.lanes();
        // SAFETY: `self` exists only where the feature was detected.
        unsafe {
            match x.len() {
                0 => {}
                1 | 2 => add_pair(neon, panel, x, sums),
                3 | 4 => add_two_pairs(neon, panel, x, sums),
                5 | 6 => add_three_pairs(neon, panel, x, sums),
                _ => add_four_pairs(neon, panel, x, sums),
            }
        }
    }
}

/// A kernel for some pairs of rows, with a name for the sums of each.
macro_rules! pairs {
    ($name:ident, $($sums:ident $upper:literal $lower:literal),+) => {
        #[target_feature(enable = "neon,i8mm")]
        fn $name(neon: Neon, panel: &[Quad], x: &[&[Four]], panel_sums: &mut [PanelSums]) {
            let (panel, _) = panel.as_chunks::<QUADS>();
            let row = |row: usize| &x[row.min(x.len() - 1)].as_chunks::<QUADS>().0[..panel.len()];
            let x = [$([row($upper), row($lower)]),+];
            for run in 0..RUNS {
                $(let mut $sums = [vdupq_n_s32(0); 4];)+
                for (index, quads) in panel.iter().enumerate() {
                    let codes = codes(neon, quads, run);
                    $($sums = add_columns($sums, codes, activations(neon, &x[$upper / 2], index));)+
                }
                $(
                    let [upper, lower] = split($sums);
                    if let Some(sums) = panel_sums.get_mut($upper) {
                        add_run(neon, upper, sums, run);
                    }
                    if let Some(sums) = panel_sums.get_mut($lower) {
                        add_run(neon, lower, sums, run);
                    }
                )+
            }
        }
    };
}

pairs!(add_pair, a 0 1);
pairs!(add_two_pairs, a 0 1, b 2 3);
pairs!(add_three_pairs, a 0 1, b 2 3, c 4 5);
pairs!(add_four_pairs, a 0 1, b 2 3, c 4 5, d 6 7);

/// Eight columns of eight outputs, and eight more.
#[inline(always)]
fn codes(neon: Neon, quads: &[Quad; QUADS], run: usize) -> [[uint8x16_t; 4]; 2] {
    let half_of_panel = run / RUNS_OF_QUAD;
    [run_of(neon, &quads[half_of_panel], run), run_of(neon, &quads[2 + half_of_panel], run)]
}

#[inline(always)]
fn run_of(neon: Neon, quad: &Quad, run: usize) -> [uint8x16_t; 4] {
    let (vectors, _) = quad.0.as_chunks::<BYTES>();
    let [a, b, c, d] = &vectors.as_chunks::<4>().0[run % RUNS_OF_QUAD];
    [
        u8x16::from_slice(neon, a).into(),
        u8x16::from_slice(neon, b).into(),
        u8x16::from_slice(neon, c).into(),
        u8x16::from_slice(neon, d).into(),
    ]
}

/// Eight columns of two rows, and eight more.
#[target_feature(enable = "neon")]
#[inline]
fn activations(neon: Neon, pair: &[&[[Four; QUADS]]; 2], index: usize) -> [int8x16_t; 2] {
    let [upper, lower] = pair;
    pair_activations(
        i8x16::from_slice(neon, upper[index].as_flattened()).into(),
        i8x16::from_slice(neon, lower[index].as_flattened()).into(),
    )
}

/// Adds the products of 16 columns of eight outputs with those of two rows.
#[target_feature(enable = "neon,i8mm")]
#[inline]
fn add_columns(
    sums: [int32x4_t; 4],
    codes: [[uint8x16_t; 4]; 2],
    x: [int8x16_t; 2],
) -> [int32x4_t; 4] {
    let [a, b, c, d] = sums;
    let [first, second] = codes;
    let [a, b] = [dots_2x2(a, x[0], first[0]), dots_2x2(b, x[0], first[1])];
    let [c, d] = [dots_2x2(c, x[0], first[2]), dots_2x2(d, x[0], first[3])];
    let [a, b] = [dots_2x2(a, x[1], second[0]), dots_2x2(b, x[1], second[1])];
    [a, b, dots_2x2(c, x[1], second[2]), dots_2x2(d, x[1], second[3])]
}

/// The sums of each of two rows, eight outputs in order.
#[target_feature(enable = "neon")]
#[inline]
fn split(sums: [int32x4_t; 4]) -> [[int32x4_t; 2]; 2] {
    let [a, b, c, d] = sums.map(|sums| vreinterpretq_s64_s32(sums));
    [[vzip1q_s64(a, b), vzip1q_s64(c, d)], [vzip2q_s64(a, b), vzip2q_s64(c, d)]]
        .map(|row| row.map(|sums| vreinterpretq_s32_s64(sums)))
}

/// Adds sums to those of a run of eight outputs.
#[inline(always)]
fn add_run(neon: Neon, sums: [int32x4_t; 2], panel_sums: &mut PanelSums, run: usize) {
    let (lanes, _) = panel_sums.0.as_chunks_mut::<LANES>();
    for (sums, lanes) in sums.into_iter().zip(&mut lanes[2 * run..]) {
        add_to(neon, lanes, sums);
    }
}

fearless_simd::kernel!(
    #[inline]
    fn two_rows(neon: Neon, rows: [&[u8]; 2], first: usize, panel: &mut [Quad]) {
        let (half_of_panel, place) = (first / 32, 8 * (first % 32));
        for (block, panel) in panel.chunks_exact_mut(BLOCK_QUADS).enumerate() {
            for half in 0..2 {
                let [upper, lower] = rows.map(|row| -> uint8x16_t {
                    let bytes = &row[block * BLOCK_BYTES..][..BLOCK_BYTES];
                    u8x16::from_slice(neon, &bytes.as_chunks::<BYTES>().0[half]).into()
                });
                for (at, packed) in pair_codes(upper, lower).into_iter().enumerate() {
                    let at = 4 * half + 2 * at + half_of_panel;
                    for (plane, codes) in planes(neon, packed).into_iter().enumerate() {
                        let quad = &mut panel[plane * (PLANE_COLUMNS / 4) + at];
                        u8x16::simd_from(neon, codes).store_slice(&mut quad.0[place..][..BYTES]);
                    }
                }
            }
        }
    }
);
