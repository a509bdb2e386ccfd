//! Panels whose weights or activations have a scale for each group of columns: the sums of a run of
//! columns become floats before the next run begins.

use std::ops::Range;

use setun_ops::ternary::{BLOCK_COLUMNS, Scales, padded_columns};

use super::LinearView;
use crate::{
    quantized::RowRun,
    scratch::PanelScratch,
    ternary_dot::TernaryDot,
    ternary_panel::{Four, MAX_RUNS, MAX_TILE_ROWS, PANEL_OUTPUTS, PanelOutputs, Quad},
};

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
        let columns = self.matrix.columns();
        let scales = &mut scratch.scales[..padded_columns(columns) / run];
        let (values, group) = match self.scaling.scales {
            Scales::Tensor(scale) => return scales.fill(PanelOutputs::of(|_| *scale)),
            Scales::Rows(values) => {
                let last = values.len() - 1;
                return scales.fill(PanelOutputs::of(|at| values[last.min(first + at)]));
            }
            Scales::ColumnGroups { columns, values } => (values, *columns),
        };
        let groups = columns.div_ceil(group);
        // Runs of padding add zeros.
        scales[columns.div_ceil(run)..].fill(PanelOutputs::default());
        for at in 0..PANEL_OUTPUTS {
            // Beyond the last output it is repeated.
            let output = (first + at).min(self.matrix.rows() - 1);
            let of_output = &values[output * groups..][..groups];
            for (of_group, value) in scales.chunks_mut((group / run).max(1)).zip(of_output) {
                for scales in of_group {
                    scales.0[at] = *value;
                }
            }
        }
    }

    /// Adds the products of some blocks of columns to the outputs of some rows.
    ///
    /// Shapes: `panel` `[quads]`, `x` `[rows][quads]`, `scales` those of all runs, `outputs` `[rows]`.
    pub(super) fn add_runs<D: TernaryDot>(
        &self,
        isa: D,
        run: usize,
        (panel, blocks): (&[Quad], Range<usize>),
        (x, rows): (&[&[Four]], Range<usize>),
        scales: &[PanelOutputs],
        outputs: &mut [PanelOutputs],
    ) {
        let columns = blocks.start * BLOCK_COLUMNS..blocks.end * BLOCK_COLUMNS;
        let shortest = self.scaling.x.shortest_run();
        let (there, parts) = (columns.start / shortest..columns.end / shortest, run / shortest);
        let mut runs = [[RowRun::default(); MAX_RUNS]; MAX_TILE_ROWS];
        for (runs, row) in runs.iter_mut().zip(rows) {
            let of_row = self.scaling.x.runs(row, there.clone());
            if parts == 1 {
                runs[..of_row.len()].copy_from_slice(of_row);
                continue;
            }
            for (run, parts) in runs.iter_mut().zip(of_row.chunks(parts)) {
                *run = RowRun::joined(parts);
            }
        }
        let w = &scales[columns.start / run..columns.end / run];
        isa.add_scaled_rows(panel, x, &runs[..x.len()], w, outputs);
    }
}
