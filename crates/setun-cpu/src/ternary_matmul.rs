//! `ternary_matmul`: how tiles of a matrix are walked; defined in
//! [`setun_ops::ternary_matmul`].
//!
//! Members claim runs of outputs. Within one, four rows of weights meet one row of activations,
//! or four at a time where there are as many, so that codes are unpacked once for four. Where
//! there are more, codes are unpacked once for all: see `panels`.

mod columns;
mod grouped;
mod panel_groups;
mod panels;
mod scaling;

use std::ops::Range;

use setun_ops::{
    TernaryMatrix,
    op::{BufferId, Linear},
    ternary::{Scales, row_bytes},
    ternary_matmul::common_group,
};

use self::scaling::Scaling;
use crate::{
    group_scratch::GroupScratch,
    split::Grid,
    step::{Buffers, Floats},
    ternary_dot::{CodeRows, TILE_OUTPUTS, TILE_ROWS, TernaryDot},
    walk::Walk,
};

/// Most bytes of packed weights in a run of outputs: a long read for each member.
const RUN_BYTES: usize = 128 * 1024;

/// Most outputs that are computed before they are stored.
pub(crate) const RUN: usize = 256;

/// Outputs of up to four rows.
pub(crate) type Run = [[f32; RUN]; TILE_ROWS];

/// A linear layer by rows with its operands.
pub(crate) struct LinearView<'a> {
    pub(crate) matrix: &'a TernaryMatrix,
    scaling: Scaling<'a>,
    /// Columns that have one scale of weights and one of activations; none where all have.
    run: Option<usize>,
    /// The number of members of the team.
    threads: usize,
}

/// Four rows of weights, a quarter of some places apart.
struct Tile<'a> {
    at: [usize; TILE_OUTPUTS],
    weights: CodeRows<'a>,
    ahead: CodeRows<'a>,
}

/// What is added to the products of a layer.
pub(crate) enum Residual<'a> {
    None,
    /// What is in the output already.
    InPlace,
    Of(&'a Floats),
}

impl<D: TernaryDot> Walk<'_, D> {
    pub(crate) fn ternary_matmul(
        &self,
        buffers: &mut Buffers,
        linear: &Linear,
        residual: Option<BufferId>,
        out: BufferId,
        out_column: usize,
    ) {
        if let Some(matrix) = self.weights.columns(linear.weight) {
            return self.by_columns(matrix, buffers, linear, residual, out, out_column);
        }
        let rows = self.rows(out);
        if self.has_panels(rows, [linear]) {
            return self.by_panels(buffers, linear, residual, out, out_column);
        }
        let in_place = residual == Some(out);
        buffers.write_floats(out, |buffers, out| {
            let linear = self.linear(buffers, linear);
            let residual = Residual::new(buffers, residual, in_place);
            let (outputs, width) = (linear.matrix.rows(), out.width);
            let out = Grid::new(&mut out.values[..rows * width], width)
                .columns(out_column..out_column + outputs)
                .tiles(rows.max(1), self.run_of_outputs(linear.matrix));
            self.each(out, |scratch, _, mut tile| {
                let columns = tile.columns();
                let groups = &mut scratch.groups;
                linear.outputs(
                    self.isa,
                    groups,
                    columns.clone(),
                    0..rows,
                    |row, outputs, products| {
                        let within = outputs.start - columns.start..outputs.end - columns.start;
                        residual.store(row, outputs, products, &mut tile.row(row)[within]);
                    },
                );
            });
        });
    }

    /// A layer with its operands.
    pub(crate) fn linear<'a>(&'a self, buffers: &'a Buffers, linear: &Linear) -> LinearView<'a> {
        let matrix = self.weights.ternary(linear.weight);
        let scaling = self.scaling(buffers, linear, matrix.scales());
        let run = common_group(scaling.x.group, matrix.scales());
        LinearView { matrix, scaling, run, threads: self.crew.threads() }
    }

    fn scaling<'a>(
        &'a self,
        buffers: &'a Buffers,
        linear: &Linear,
        scales: &'a Scales,
    ) -> Scaling<'a> {
        Scaling {
            x: buffers.quantized(linear.x),
            scales,
            bias: linear.bias.map(|bias| (self.weights.vector(bias.weight), bias.before_scale)),
        }
    }

    /// How many outputs a member claims at once: whole tiles, and several runs for each member.
    pub(crate) fn run_of_outputs(&self, matrix: &TernaryMatrix) -> usize {
        let by_size = RUN_BYTES / row_bytes(matrix.columns());
        let by_threads = matrix.rows().div_ceil(4 * self.crew.threads());
        by_size.min(by_threads).next_multiple_of(TILE_OUTPUTS).max(TILE_OUTPUTS)
    }
}

impl<'a> Residual<'a> {
    fn new(buffers: &'a Buffers, residual: Option<BufferId>, in_place: bool) -> Self {
        match residual {
            None => Self::None,
            Some(_) if in_place => Self::InPlace,
            Some(id) => Self::Of(buffers.floats(id)),
        }
    }

    /// `y = products + residual` for some outputs of a row.
    fn store(&self, row: usize, outputs: Range<usize>, products: &[f32], y: &mut [f32]) {
        match self {
            Self::None => y.copy_from_slice(products),
            Self::InPlace => {
                y.iter_mut().zip(products).for_each(|(y, product)| *y += product);
            }
            Self::Of(residual) => {
                let residual = &residual.row(row)[outputs];
                for (y, (product, residual)) in y.iter_mut().zip(products.iter().zip(residual)) {
                    *y = product + residual;
                }
            }
        }
    }
}

impl LinearView<'_> {
    /// Computes a run of outputs for some rows. `store` gets, for each row, up to [`RUN`]
    /// neighbouring outputs at a time.
    fn outputs<D: TernaryDot>(
        &self,
        isa: D,
        scratch: &mut GroupScratch,
        outputs: Range<usize>,
        rows: Range<usize>,
        mut store: impl FnMut(usize, Range<usize>, &[f32]),
    ) {
        for first_row in rows.clone().step_by(TILE_ROWS) {
            let tile_rows = first_row..rows.end.min(first_row + TILE_ROWS);
            for first in outputs.clone().step_by(RUN) {
                let run = first..outputs.end.min(first + RUN);
                let y = self.run(isa, scratch, run.clone(), tile_rows.clone());
                for (row, y) in tile_rows.clone().zip(&y) {
                    store(row, run.clone(), &y[..run.len()]);
                }
            }
        }
    }

    /// Up to [`RUN`] neighbouring outputs of up to four rows, without residual.
    pub(crate) fn run<D: TernaryDot>(
        &self,
        isa: D,
        scratch: &mut GroupScratch,
        outputs: Range<usize>,
        rows: Range<usize>,
    ) -> Run {
        if let Some(run) = self.run {
            return self.by_groups(isa, scratch, run, outputs, rows);
        }
        self.whole(isa, outputs, rows)
    }

    /// Whether products are by groups of columns.
    pub(crate) fn has_groups(&self) -> bool {
        self.run.is_some()
    }

    /// [`run`](Self::run) without groups.
    pub(crate) fn whole<D: TernaryDot>(
        &self,
        isa: D,
        outputs: Range<usize>,
        rows: Range<usize>,
    ) -> Run {
        let all: [usize; RUN] = std::array::from_fn(|index| index);
        self.picked(isa, outputs.start, &all[..outputs.len()], rows)
    }

    /// Those of [`run`](Self::run) at some places, which count from output `first`; anything
    /// elsewhere. Places ascend. Not by groups.
    pub(crate) fn picked<D: TernaryDot>(
        &self,
        isa: D,
        first: usize,
        places: &[usize],
        rows: Range<usize>,
    ) -> Run {
        let mut y = [[0.0; RUN]; TILE_ROWS];
        let Some(last) = places.last() else { return y };
        let dots = self.dots(isa, first, places, rows.clone());
        for (row, (dots, y)) in rows.zip(dots.iter().zip(&mut y)) {
            self.scaling.run(isa.lanes(), dots, first..first + last + 1, row, y);
        }
        y
    }

    /// The sums over codes of some places; zero elsewhere.
    fn dots<D: TernaryDot>(
        &self,
        isa: D,
        first: usize,
        places: &[usize],
        rows: Range<usize>,
    ) -> [[i32; RUN]; TILE_ROWS] {
        let mut dots = [[0; RUN]; TILE_ROWS];
        for step in 0..places.len().div_ceil(TILE_OUTPUTS) {
            let Tile { at, weights, ahead } = self.tile(isa, first, places, step);
            // Three rows cost as much alone as four together.
            if rows.len() > 2 {
                // Beyond the last row it is repeated.
                let row = |index: usize| (rows.start + index).min(rows.end - 1);
                let x = std::array::from_fn(|index| self.scaling.x.row(row(index)));
                for (dots, tile) in dots.iter_mut().zip(isa.code_dots_wide(weights, ahead, x)) {
                    set(dots, at, tile);
                }
            } else {
                // The second row asks again for what is here already, which does no harm.
                for (row, dots) in rows.clone().zip(&mut dots) {
                    set(dots, at, isa.code_dots(weights, ahead, self.scaling.x.row(row)));
                }
            }
        }
        dots
    }

    /// The tile of a step through some places. Its four outputs are a quarter of the places apart: a
    /// processor reads ahead in each of four pages, and so four times as far as in one.
    #[inline(always)]
    fn tile<D: TernaryDot>(&self, isa: D, first: usize, places: &[usize], step: usize) -> Tile<'_> {
        let (steps, end) = (places.len().div_ceil(TILE_OUTPUTS), places.len() - 1);
        let mut at = [0; TILE_OUTPUTS];
        let [mut weights, mut ahead]: [CodeRows<'_>; 2] = [[&[]; TILE_OUTPUTS]; 2];
        // Not by `map`, whose closures would be called.
        for part in 0..TILE_OUTPUTS {
            // Beyond the last place it is repeated.
            let index = part * steps + step;
            at[part] = places[index.min(end)];
            weights[part] = self.matrix.row(first + at[part]);
            let next = places[(index + isa.tiles_ahead()).min(end)];
            ahead[part] = self.matrix.row(first + next);
        }
        Tile { at, weights, ahead }
    }
}

/// Puts the sums of a tile in their places.
fn set<T: Copy>(dots: &mut [T; RUN], at: [usize; TILE_OUTPUTS], tile: [T; TILE_OUTPUTS]) {
    for part in 0..TILE_OUTPUTS {
        dots[at[part]] = tile[part];
    }
}
