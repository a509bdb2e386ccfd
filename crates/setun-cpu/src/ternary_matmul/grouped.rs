//! Products whose weights or activations have a scale for each group of columns: integer sums of
//! each run of columns by the instruction set, their scales over lanes.

use std::ops::Range;

use setun_ops::ternary::{Scales, padded_columns};

use super::{LinearView, RUN, Run, set};
use crate::{
    column_sums::ColumnSums,
    group_scratch::GroupScratch,
    quantized::RowRun,
    scaled_runs::{RUNS, scaled},
    ternary_dot::{TILE_OUTPUTS, TILE_ROWS, TernaryDot},
};

impl LinearView<'_> {
    /// Up to [`RUN`] neighbouring outputs of up to four rows, one row after the other; `run` columns
    /// have one scale of weights and one of activations.
    pub(super) fn by_groups<D: TernaryDot>(
        &self,
        isa: D,
        scratch: &mut GroupScratch,
        run: usize,
        outputs: Range<usize>,
        rows: Range<usize>,
    ) -> Run {
        let mut y = [[0.0; RUN]; TILE_ROWS];
        let places: [usize; RUN] = std::array::from_fn(|index| index);
        let (places, columns) = (&places[..outputs.len()], self.matrix.columns());
        for (row, y) in rows.zip(&mut y) {
            self.enter_row(scratch, run, row);
            for step in 0..places.len().div_ceil(TILE_OUTPUTS) {
                let tile = self.tile(isa, outputs.start, places, step);
                self.request_scales(isa, outputs.start, tile.next);
                let x = self.scaling.x.row(row);
                isa.run_dots(tile.weights, tile.ahead, x, run, &mut scratch.dots);
                let rows = tile.at.map(|at| outputs.start + at);
                let scales = (self.scaling.scales, columns);
                set(y, tile.at, scaled(isa.lanes(), scratch, scales, run, rows));
            }
            if let Some((bias, _)) = self.scaling.bias {
                y.iter_mut().zip(&bias[outputs.clone()]).for_each(|(y, bias)| *y += bias);
            }
        }
        y
    }

    /// Requests the weight scales of the rows of a tile that comes soon.
    fn request_scales<D: TernaryDot>(&self, isa: D, first: usize, next: [usize; TILE_OUTPUTS]) {
        if let Scales::ColumnGroups { columns, values } = self.scaling.scales {
            let groups = self.matrix.columns().div_ceil(*columns);
            for at in next {
                let scales = &values[(first + at) * groups..][..groups];
                isa.columns().prefetch(bytemuck::cast_slice(scales));
            }
        }
    }

    /// The scale and the sum of codes of each run of a row. Runs of padding have a scale of 0.
    fn enter_row(&self, scratch: &mut GroupScratch, run: usize, row: usize) {
        let columns = padded_columns(self.matrix.columns());
        scratch.take((columns / run).next_multiple_of(RUNS));
        let x = self.scaling.x;
        let runs = x.runs(row, 0..columns / x.shortest_run());
        let runs = runs.chunks(run / x.shortest_run()).map(RowRun::joined);
        let runs = runs.chain(std::iter::repeat(RowRun::default()));
        for ((t, sum), of_run) in scratch.t.iter_mut().zip(&mut *scratch.sums).zip(runs) {
            (*t, *sum) = (of_run.t, [of_run.sum; TILE_OUTPUTS]);
        }
    }
}
