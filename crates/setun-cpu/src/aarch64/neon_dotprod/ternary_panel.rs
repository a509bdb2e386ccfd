//! NEON-dotprod twin of [`ternary_panel`](crate::ternary_panel).
//!
//! Two vectors of four outputs meet up to eight rows: 16 sums stay in registers. `sdot` takes four
//! activations from any quarter of a vector, so a load of a row serves four quads, whose codes,
//! eight vectors, wait in registers for all rows.
//!
//! As in `ternary_dot`, the instruction is assembly, and sums are named one by one.

#![expect(unsafe_code, reason = "an instruction without a stable intrinsic, and its feature")]

use std::arch::{
    aarch64::{int8x16_t, int32x4_t, uint8x16_t, vdupq_n_s32},
    asm,
};

use fearless_simd::{aarch64::Neon, i8x16, prelude::*, u8x16};

use super::NeonDotprod;
use crate::{
    aarch64::neon::ternary_panel::add_lanes,
    ternary_panel::{Four, PanelSums, Quad, TernaryPanel, UNPACKED_ROWS},
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
    const FEWEST_ROWS: usize = 8;
    /// In the first-level cache while all rows pass.
    const BLOCKS: usize = 2;
    const ROWS: usize = 8;

    fn unpack_rows(self, rows: [&[u8]; UNPACKED_ROWS], first: usize, panel: &mut [Quad]) {
        self.0.unpack_rows(rows, first, panel);
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
                    let codes = quads.each_ref().map(|quad| codes(neon, quad, pair));
                    $($sums = add_quads($sums, codes, activations(neon, &x[$row][index]));)+
                }
                $(
                    let (lanes, _) = panel_sums[$row].0.as_chunks_mut::<LANES>();
                    add_lanes(neon, $sums[0], &mut lanes[2 * pair]);
                    add_lanes(neon, $sums[1], &mut lanes[2 * pair + 1]);
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
    [2 * pair, 2 * pair + 1].map(|index| u8x16::from_slice(neon, &vectors[index]).into())
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
