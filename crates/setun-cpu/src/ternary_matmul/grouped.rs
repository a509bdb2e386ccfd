//! Matrices with a scale for each group of columns: one output after the other, plane by plane.

use fearless_simd::prelude::*;
use setun_ops::ternary::{BLOCK_BYTES, BLOCK_COLUMNS, PLANE_COLUMNS};

use super::{LinearView, scaling::to_f32};
use crate::ternary_dot::TernaryDot;

impl LinearView<'_> {
    /// One output of a matrix with a scale for each group of columns.
    pub(super) fn grouped<D: TernaryDot>(
        &self,
        isa: D,
        group: usize,
        output: usize,
        row: usize,
    ) -> f32 {
        let (codes, x) = (self.matrix.row(output), self.scaling.x.row(row));
        let columns = self.matrix.columns();
        let mut acc = 0.0;
        for start in (0..columns).step_by(group) {
            // Padding beyond the last column has activations 0.
            let planes = start / PLANE_COLUMNS..columns.min(start + group).div_ceil(PLANE_COLUMNS);
            let dot: i32 = planes.map(|plane| plane_dot(isa.lanes(), codes, x, plane)).sum();
            acc += to_f32(dot) * self.matrix.scale(output, start);
        }
        let y = acc * self.scaling.x.scales[row];
        match self.scaling.bias {
            Some((bias, _)) => y + bias[output],
            None => y,
        }
    }
}

/// `Σ weight × activation` over one plane of 32 columns.
fn plane_dot<S: Simd>(simd: S, codes: &[u8], x: &[i8], plane: usize) -> i32 {
    simd.vectorize(
        #[inline(always)]
        || {
            let block = plane * PLANE_COLUMNS / BLOCK_COLUMNS;
            let shift = 2 * (plane % (BLOCK_COLUMNS / PLANE_COLUMNS));
            let codes = &codes[block * BLOCK_BYTES..][..BLOCK_BYTES];
            let x = &x[plane * PLANE_COLUMNS..][..PLANE_COLUMNS];
            let weight = |code: u8| i32::from(code >> shift & 0b11) - 1;
            codes.iter().zip(x).map(|(&code, &x)| weight(code) * i32::from(x)).sum()
        },
    )
}
