//! Products whose weights or activations have a scale for each group of columns: integer sums of
//! each run of columns by the instruction set, their scales over lanes.

use std::ops::Range;

use setun_ops::ternary::{Scales, padded_columns, row_bytes};

use super::{LinearView, RUN, Run, set};
use crate::{
    column_sums::ColumnSums,
    group_scratch::GroupScratch,
    quantized::RowRun,
    scaled_runs::{RUNS, scaled},
    ternary_dot::{CodeRows, TILE_OUTPUTS, TILE_ROWS, TernaryDot},
};

/// The most bytes of packed codes that are requested ahead. With twice as many, requests wait for
/// each other.
const AHEAD_BYTES: usize = 10 * 1024;

/// The codes and the group scales of a matrix, by output.
struct GroupRows<'a> {
    codes: &'a [u8],
    /// Bytes of codes of an output.
    bytes: usize,
    /// Scales by groups, `[outputs, groups]`. Empty where scales are not by groups.
    scales: &'a [f32],
    groups: usize,
}

/// Outputs of a tile.
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
        let (of_tile, columns) = (GroupRows::new(self), self.matrix.columns());
        let (steps, following) = (steps(&outputs), self.following(&outputs));
        let tiles_ahead = isa.tiles_ahead().min(of_tile.tiles_ahead());
        for (row, y) in rows.zip(&mut y) {
            self.enter_row(scratch, run, row);
            let x = self.scaling.x.row(row);
            for step in 0..steps {
                let (at, ahead) = (places(&outputs, step), step + tiles_ahead);
                let next = match ahead.checked_sub(steps) {
                    None => places(&outputs, ahead),
                    Some(ahead) => places(&following, ahead),
                };
                of_tile.request_scales(isa, next);
                let [weights, ahead] = [of_tile.codes(at), of_tile.codes(next)];
                isa.run_dots(weights, ahead, x, run, &mut scratch.dots);
                let scales = (self.scaling.scales, columns);
                let sums = scaled(isa.lanes(), scratch, scales, run, at);
                set(y, at.map(|at| at - outputs.start), sums);
            }
            if let Some((bias, _)) = self.scaling.bias {
                y.iter_mut().zip(&bias[outputs.clone()]).for_each(|(y, bias)| *y += bias);
            }
        }
        y
    }

    /// The run of outputs that a member most likely claims next. After the last run, it is the last
    /// output of `outputs`.
    fn following(&self, outputs: &Range<usize>) -> Range<usize> {
        let stride = self.threads * outputs.len();
        let end = self.matrix.rows().min(outputs.end + stride);
        let start = outputs.start + stride;
        if start < end { start..end } else { outputs.end - 1..outputs.end }
    }

    /// The scale and the sum of codes of each run of a row. Runs of padding have a scale of 0.
    fn enter_row(&self, scratch: &mut GroupScratch, run: usize, row: usize) {
        let columns = padded_columns(self.matrix.columns());
        scratch.take((columns / run).next_multiple_of(RUNS));
        let x = self.scaling.x;
        let runs = x.runs(row, 0..columns / x.shortest_run());
        scratch.enter(runs.chunks(run / x.shortest_run()).map(RowRun::joined));
    }
}

/// The number of tiles of some outputs.
fn steps(outputs: &Range<usize>) -> usize {
    outputs.len().div_ceil(TILE_OUTPUTS)
}

/// The outputs of a tile, a quarter of all apart. An output after the last one is the last one.
#[inline(always)]
fn places(outputs: &Range<usize>, step: usize) -> Places {
    let (steps, last) = (steps(outputs), outputs.end - 1);
    let a = outputs.start + step;
    let [b, c, d] = [a + steps, a + 2 * steps, a + 3 * steps];
    [a.min(last), b.min(last), c.min(last), d.min(last)]
}

impl<'a> GroupRows<'a> {
    fn new(linear: &LinearView<'a>) -> Self {
        let columns = linear.matrix.columns();
        let (scales, groups): (&[f32], usize) = match linear.scaling.scales {
            Scales::ColumnGroups { columns: group, values } => (values, columns.div_ceil(*group)),
            _ => (&[], 0),
        };
        Self { codes: linear.matrix.codes(), bytes: row_bytes(columns), scales, groups }
    }

    /// The most tiles that are requested ahead.
    fn tiles_ahead(&self) -> usize {
        (AHEAD_BYTES / (TILE_OUTPUTS * self.bytes)).max(1)
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
