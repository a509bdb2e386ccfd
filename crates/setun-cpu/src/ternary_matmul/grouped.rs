//! Products whose weights or activations have a scale for each group of columns: integer sums of
//! each run of columns by the instruction set, their scales over lanes.

use std::ops::Range;

use setun_ops::ternary::{BLOCK_COLUMNS, PLANE_COLUMNS, Scales, row_bytes};

use super::{LinearView, RUN, Run, set};
use crate::{
    column_sums::ColumnSums,
    group_scratch::GroupScratch,
    scaled_runs::{RUNS, scaled},
    ternary_dot::{CodeDots, CodeRows, TILE_OUTPUTS, TILE_ROWS, TernaryDot},
};

/// What a loop over tiles reads of a matrix: that of some neighbouring outputs alone.
struct GroupRows<'a> {
    codes: &'a [u8],
    /// Bytes of codes of an output.
    bytes: usize,
    /// Scales, and how many an output has; none where they are not by groups.
    scales: &'a [f32],
    groups: usize,
    outputs: Range<usize>,
}

/// Four outputs, a quarter of some neighbouring ones apart.
type Places = [usize; TILE_OUTPUTS];

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
        let of_tile = GroupRows::new(self, outputs.clone());
        let steps = outputs.len().div_ceil(TILE_OUTPUTS);
        let (tiles_ahead, columns) = (isa.tiles_ahead(), self.matrix.columns());
        for (row, y) in rows.zip(&mut y) {
            self.enter_row(scratch, run, row);
            let x = self.scaling.x.row(row);
            for step in 0..steps {
                let (at, next) = (of_tile.at(steps, step), of_tile.at(steps, step + tiles_ahead));
                of_tile.request_scales(isa, next);
                let [weights, ahead] = [of_tile.codes(at), of_tile.codes(next)];
                isa.run_dots(weights, ahead, x, run, &mut scratch.dots);
                let rows = at.map(|at| outputs.start + at);
                let scales = (self.scaling.scales, columns);
                set(y, at, scaled(isa.lanes(), scratch, scales, run, rows));
            }
            if let Some((bias, _)) = self.scaling.bias {
                y.iter_mut().zip(&bias[outputs.clone()]).for_each(|(y, bias)| *y += bias);
            }
        }
        y
    }

    /// The scale and the sum of codes of each run of a row. Runs of padding have a scale of 0.
    fn enter_row(&self, scratch: &mut GroupScratch, run: usize, row: usize) {
        let (x, columns) = (self.scaling.x, self.matrix.columns());
        let runs = columns.div_ceil(BLOCK_COLUMNS) * (BLOCK_COLUMNS / run);
        scratch.take(runs.next_multiple_of(RUNS));
        let (t, padding) = scratch.t.split_at_mut(columns.div_ceil(run));
        let of_scale = x.group.map_or(t.len(), |group| group / run);
        for (t, scale) in t.chunks_mut(of_scale).zip(x.scales_of_row(row)) {
            t.fill([*scale; TILE_OUTPUTS]);
        }
        padding.fill([0.0; TILE_OUTPUTS]);
        let (sums, padding) = scratch.sums.split_at_mut(runs);
        let planes = x.plane_sums_of_row(row);
        match run / PLANE_COLUMNS {
            1 => set_sums::<1>(planes, sums),
            2 => set_sums::<2>(planes, sums),
            _ => set_sums::<{ BLOCK_COLUMNS / PLANE_COLUMNS }>(planes, sums),
        }
        padding.fill([0; TILE_OUTPUTS]);
    }
}

impl<'a> GroupRows<'a> {
    fn new(linear: &LinearView<'a>, outputs: Range<usize>) -> Self {
        let columns = linear.matrix.columns();
        let bytes = row_bytes(columns);
        let codes = &linear.matrix.codes()[outputs.start * bytes..outputs.end * bytes];
        let (scales, groups): (&[f32], usize) = match linear.scaling.scales {
            Scales::ColumnGroups { columns: group, values } => {
                let groups = columns.div_ceil(*group);
                (&values[outputs.start * groups..outputs.end * groups], groups)
            }
            _ => (&[], 0),
        };
        Self { codes, bytes, scales, groups, outputs }
    }

    /// The places of a step, counted from the first output. Beyond the last it is repeated.
    #[inline(always)]
    fn at(&self, steps: usize, step: usize) -> Places {
        let last = self.outputs.len() - 1;
        let [b, c, d] = [step + steps, step + 2 * steps, step + 3 * steps];
        [step.min(last), b.min(last), c.min(last), d.min(last)]
    }

    /// Packed codes of four outputs.
    #[inline(always)]
    fn codes(&self, [a, b, c, d]: Places) -> CodeRows<'a> {
        let bytes = self.bytes;
        [
            &self.codes[a * bytes..][..bytes],
            &self.codes[b * bytes..][..bytes],
            &self.codes[c * bytes..][..bytes],
            &self.codes[d * bytes..][..bytes],
        ]
    }

    /// Requests the weight scales of a tile that comes soon.
    #[inline(always)]
    fn request_scales<D: TernaryDot>(&self, isa: D, next: Places) {
        for at in next {
            let scales = &self.scales[at * self.groups..][..self.groups];
            isa.columns().prefetch(bytemuck::cast_slice(scales));
        }
    }
}

/// The sums of runs of some planes.
fn set_sums<const PLANES: usize>(planes: &[i32], sums: &mut [CodeDots]) {
    for (planes, sum) in planes.as_chunks::<PLANES>().0.iter().zip(sums) {
        *sum = [planes.iter().sum(); TILE_OUTPUTS];
    }
}

impl super::scaling::Scaling<'_> {
    /// The scale and the sum of codes of a run of a row.
    pub(super) fn run_of_row(
        &self,
        run: usize,
        row: usize,
        index: usize,
        columns: usize,
    ) -> (f32, i32) {
        if index * run >= columns {
            return (0.0, 0);
        }
        let planes = index * run / PLANE_COLUMNS..(index + 1) * run / PLANE_COLUMNS;
        (self.x.scale(row, index * run), self.x.run_sum(row, planes))
    }

    /// The weight scale of a run of an output.
    pub(super) fn weight_of_run(&self, run: usize, output: usize, index: usize) -> f32 {
        match self.scales {
            Scales::Tensor(scale) => *scale,
            Scales::Rows(scales) => scales[output],
            Scales::ColumnGroups { columns, values } => {
                values[output * self.x.width.div_ceil(*columns) + index * run / columns]
            }
        }
    }
}
