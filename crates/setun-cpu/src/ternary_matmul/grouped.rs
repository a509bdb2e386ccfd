//! Products whose weights or activations have a scale for each group of columns: integer sums of
//! each run of columns by the instruction set, their scales over lanes.

use std::ops::Range;

use fearless_simd::{f32x4, f32x16, i32x16, prelude::*};
use setun_ops::ternary::{BLOCK_COLUMNS, PLANE_COLUMNS, Scales};

use super::{LinearView, RUN, Run, set};
use crate::{
    scratch::GroupScratch,
    ternary_dot::{CodeDots, TILE_OUTPUTS, TILE_ROWS, TernaryDot},
};

/// Runs whose sums and scales fill a vector.
const RUNS: usize = 4;

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
        let places = &places[..outputs.len()];
        for (row, y) in rows.zip(&mut y) {
            self.enter_row(scratch, run, row);
            for step in 0..places.len().div_ceil(TILE_OUTPUTS) {
                let tile = self.tile(isa, outputs.start, places, step);
                let x = self.scaling.x.row(row);
                isa.run_dots(tile.weights, tile.ahead, x, run, &mut scratch.dots);
                let rows = tile.at.map(|at| outputs.start + at);
                set(y, tile.at, self.scaled(isa.lanes(), scratch, run, rows));
            }
            if let Some((bias, _)) = self.scaling.bias {
                y.iter_mut().zip(&bias[outputs.clone()]).for_each(|(y, bias)| *y += bias);
            }
        }
        y
    }

    /// The scale and the sum of codes of each run of a row. Runs of padding have a scale of 0.
    fn enter_row(&self, scratch: &mut GroupScratch, run: usize, row: usize) {
        let columns = self.matrix.columns();
        let runs = columns.div_ceil(BLOCK_COLUMNS) * (BLOCK_COLUMNS / run);
        scratch.take(runs.next_multiple_of(RUNS));
        for (index, (t, sum)) in scratch.t.iter_mut().zip(&mut *scratch.sums).enumerate() {
            (*t, *sum) = self.scaling.run_of_row(run, row, index, columns);
        }
    }

    /// `Σ dot_g × (t_g × w_g)` of four outputs, runs ascending.
    fn scaled<S: Simd>(
        &self,
        simd: S,
        scratch: &GroupScratch,
        run: usize,
        outputs: [usize; TILE_OUTPUTS],
    ) -> [f32; TILE_OUTPUTS] {
        simd.vectorize(
            #[inline(always)]
            || {
                let mut acc = f32x4::splat(simd, 0.0);
                let chunks = scratch.dots.as_chunks::<RUNS>().0.iter();
                let t = scratch.t.as_chunks::<RUNS>().0.iter();
                let of_row = t.zip(scratch.sums.as_chunks::<RUNS>().0);
                for (chunk, (dots, (t, sums))) in chunks.zip(of_row).enumerate() {
                    let t: f32x4<S> = f32x4::from_slice(simd, t);
                    let w = |part: usize| {
                        let scales = self.scaling.weights_of_runs(run, outputs[part], chunk);
                        t * f32x4::from_slice(simd, &scales)
                    };
                    let [a, b, c, d] = transposed([w(0), w(1), w(2), w(3)]);
                    let scales: f32x16<S> = a.combine(b).combine(c.combine(d));
                    let products = to_floats(simd, dots, sums) * scales;
                    let (low, high) = products.split();
                    let ((a, b), (c, d)) = (low.split(), high.split());
                    acc = (((acc + a) + b) + c) + d;
                }
                acc.into()
            },
        )
    }
}

/// Sums over weights of four runs from those over codes.
#[inline(always)]
fn to_floats<S: Simd>(simd: S, dots: &[CodeDots; RUNS], sums: &[i32; RUNS]) -> f32x16<S> {
    let dots = i32x16::from_slice(simd, dots.as_flattened());
    let sums = sums.map(|sum| [sum; TILE_OUTPUTS]);
    f32x16::float_from(dots - i32x16::from_slice(simd, sums.as_flattened()))
}

/// Lane `j` of vector `i` goes to lane `i` of vector `j`.
#[inline(always)]
fn transposed<S: Simd>([a, b, c, d]: [f32x4<S>; 4]) -> [f32x4<S>; 4] {
    let [(ac_low, ac_high), (bd_low, bd_high)] =
        [(a.zip_low(c), a.zip_high(c)), (b.zip_low(d), b.zip_high(d))];
    [
        ac_low.zip_low(bd_low),
        ac_low.zip_high(bd_low),
        ac_high.zip_low(bd_high),
        ac_high.zip_high(bd_high),
    ]
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

    /// The weight scales of four runs of an output; anything finite beyond the last.
    #[inline(always)]
    fn weights_of_runs(&self, run: usize, output: usize, chunk: usize) -> [f32; RUNS] {
        let (values, groups, per_group) = match self.scales {
            Scales::Tensor(scale) => return [*scale; RUNS],
            Scales::Rows(scales) => return [scales[output]; RUNS],
            Scales::ColumnGroups { columns, values } => {
                (values, self.x.width.div_ceil(*columns), columns / run)
            }
        };
        let of_output = &values[output * groups..][..groups];
        let first = chunk * RUNS;
        if per_group == 1
            && let Some(four) = of_output.get(first..first + RUNS)
        {
            return [four[0], four[1], four[2], four[3]];
        }
        std::array::from_fn(|at| of_output[((first + at) / per_group).min(groups - 1)])
    }

    /// The weight scale of a run of an output.
    pub(super) fn weight_of_run(&self, run: usize, output: usize, index: usize) -> f32 {
        self.weights_of_runs(run, output, index / RUNS)[index % RUNS]
    }
}
