//! Panels whose weights or activations have a scale for each group of columns: the sums of a run of
//! columns become floats before the next run begins.

use std::ops::Range;

use fearless_simd::{f32x16, i32x16, prelude::*};

use super::LinearView;
use crate::{
    lanes::LANES,
    scratch::PanelScratch,
    ternary_dot::TernaryDot,
    ternary_panel::{Four, MAX_TILE_ROWS, PANEL_OUTPUTS, PanelOutputs, PanelSums, Quad},
};

/// Part of a panel: the codes of some runs of columns, and what some rows have there.
pub(super) struct PanelRuns<'a> {
    /// Columns of a run.
    pub(super) run: usize,
    /// The first run.
    pub(super) first: usize,
    /// Codes, `[runs × run / 4]`.
    pub(super) panel: &'a [Quad],
    /// Activations of each row, `[runs × run / 4]`.
    pub(super) x: &'a [&'a [Four]],
    /// The rows.
    pub(super) rows: Range<usize>,
}

impl LinearView<'_> {
    /// Sets the outputs of some rows to zero and takes in the weight scales of a panel.
    pub(super) fn enter_panel(
        &self,
        scratch: &mut PanelScratch,
        run: usize,
        first: usize,
        rows: usize,
    ) {
        scratch.outputs[..rows].fill(PanelOutputs::default());
        let runs = self.matrix.columns().div_ceil(run);
        for (index, scales) in scratch.scales[..runs].iter_mut().enumerate() {
            for (at, scale) in scales.0.iter_mut().enumerate() {
                let output = (first + at).min(self.matrix.rows() - 1);
                *scale = self.scaling.weight_of_run(run, output, index);
            }
        }
    }

    /// Adds the products of some runs to the outputs of some rows, `sums` being memory for theirs.
    pub(super) fn add_runs<D: TernaryDot>(
        &self,
        isa: D,
        part: &PanelRuns<'_>,
        sums: &mut [PanelSums],
        scales: &[PanelOutputs],
        outputs: &mut [PanelOutputs],
    ) {
        let columns = self.matrix.columns();
        let (quads, rows) = (part.run / 4, part.rows.len());
        // Runs of padding add nothing.
        let runs = part.panel.chunks_exact(quads).enumerate();
        for (index, panel) in runs.take_while(|(at, _)| (part.first + at) * part.run < columns) {
            sums.fill(PanelSums::default());
            let x: [&[Four]; MAX_TILE_ROWS] =
                std::array::from_fn(|row| &part.x[row.min(rows - 1)][index * quads..][..quads]);
            isa.add_rows(panel, &x[..rows], sums);
            let index = part.first + index;
            let each = part.rows.clone().zip(&*sums).zip(&mut *outputs);
            for ((row, sums), outputs) in each {
                let of_row = self.scaling.run_of_row(part.run, row, index, columns);
                add_scaled(isa.lanes(), sums, of_row, &scales[index], outputs);
            }
        }
    }
}

/// `y += dot_g × (t_g × w_g)` of the outputs of a panel.
fn add_scaled<S: Simd>(
    simd: S,
    sums: &PanelSums,
    (t, sum): (f32, i32),
    scales: &PanelOutputs,
    outputs: &mut PanelOutputs,
) {
    simd.vectorize(
        #[inline(always)]
        || {
            for at in 0..PANEL_OUTPUTS / LANES {
                let dots = i32x16::from_slice(simd, &sums.0.as_chunks::<LANES>().0[at]);
                let w = f32x16::from_slice(simd, &scales.0.as_chunks::<LANES>().0[at]);
                let y = &mut outputs.0.as_chunks_mut::<LANES>().0[at];
                let products = f32x16::float_from(dots - sum) * (w * t);
                (f32x16::from_slice(simd, y) + products).store_slice(y);
            }
        },
    );
}
