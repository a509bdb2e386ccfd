//! A ternary table as its own screen: its codes are exact, so that only the hidden row is taken as integers.
//!
//! `x̂` has int8 codes and a scale for each run of columns. `w·x̂` is a sum over runs, each an integer times scales, in
//! `f32`. The logit of the definition is no farther from it than
//!
//! ```text
//! ‖w‖ ‖x−x̂‖  +  (γ + γ_runs) ‖w‖ ‖x‖  +  underflows
//! ```
//!
//! with `γ_runs` for the roundings of that sum, and `‖w‖` from above: as if no weight were zero.

use std::ops::Range;

use setun_ops::{
    TernaryMatrix,
    ternary::{BLOCK_COLUMNS, Scales, padded_columns},
    ternary_matmul::common_group,
};

use super::{
    BOUND_ERROR, Hidden, Screen,
    numbers::{MIN_ERROR, ROUND_UP, columns_to_f64, to_f32, up},
};
use crate::{
    column_sums::ColumnSums,
    group_scratch::GroupScratch,
    memory::zeroed,
    quantized::RowRun,
    scaled_runs::{RUNS, scaled},
    ternary_dot::{TILE_OUTPUTS, TernaryDot},
};

/// Largest weight scale: a run's product with it is finite in `f32`, and so are their sums.
const MAX_SCALE: f32 = 1e28;

/// A hidden row as int8 codes, ready for the screen of a ternary table.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TernaryHidden<'a> {
    pub(crate) hidden: Hidden,
    /// `[columns]`
    pub(crate) codes: &'a [i8],
    /// The scale and the sum of each run of codes.
    pub(crate) runs: &'a [RowRun],
}

/// Lower and upper bounds of the logits of a tile.
pub(crate) type TileBounds = [[f32; TILE_OUTPUTS]; 2];

impl Screen {
    /// The screen of a ternary matrix; `None` if a scale is so large that sums might not be finite, or there is no memory.
    pub(crate) fn ternary(matrix: &TernaryMatrix) -> Option<Self> {
        let (rows, columns) = (matrix.rows(), matrix.columns());
        let run = common_group(None, matrix.scales()).unwrap_or(BLOCK_COLUMNS);
        let mut norms = zeroed(rows, "a screen").ok()?;
        let mut largest_norm = 0.0f64;
        for (row, norm) in norms.iter_mut().enumerate() {
            let mut squares = 0.0;
            for first in (0..columns).step_by(run) {
                let scale = matrix.scale(row, first);
                if scale.abs() > MAX_SCALE {
                    return None;
                }
                let weights = columns_to_f64(run.min(columns - first));
                squares += weights * (f64::from(scale) * f64::from(scale));
            }
            *norm = up(squares.sqrt() * ROUND_UP);
            largest_norm = largest_norm.max(f64::from(*norm));
        }
        let columns = padded_columns(columns);
        let runs = (columns / run).next_multiple_of(RUNS);
        let (codes, blocks) = <_>::default();
        Some(Self { rows, columns, codes, blocks, norms, run, runs, largest_norm })
    }

    /// Runs of a ternary table, padded to whole vectors; 0 of another.
    pub(crate) fn runs(&self) -> usize {
        self.runs
    }

    /// Bounds of the logits of a run of tokens. `store` gets them for each hidden row and tile of
    /// tokens; beyond the run they are to be ignored.
    pub(crate) fn ternary_bounds<D: TernaryDot>(
        &self,
        isa: D,
        matrix: &TernaryMatrix,
        scratch: &mut GroupScratch,
        tokens: Range<usize>,
        hidden: &[TernaryHidden<'_>],
        mut store: impl FnMut(usize, Range<usize>, &TileBounds),
    ) {
        scratch.take(self.runs);
        let far = TILE_OUTPUTS * isa.tiles_ahead();
        for (row, hidden) in hidden.iter().enumerate() {
            scratch.enter(hidden.runs.iter().copied());
            for first in tokens.clone().step_by(TILE_OUTPUTS) {
                // Beyond the last row it is repeated; what lies behind the run is requested for the next.
                let at = |ahead: usize| -> [usize; TILE_OUTPUTS] {
                    std::array::from_fn(|part| (first + ahead + part).min(self.rows - 1))
                };
                let (weights, ahead) =
                    (at(0).map(|at| matrix.row(at)), at(far).map(|at| matrix.row(at)));
                request_scales(isa, matrix, at(far)[0]..at(far + 1)[TILE_OUTPUTS - 1]);
                isa.run_dots(weights, ahead, hidden.codes, self.run, &mut scratch.dots);
                let sums = scaled(
                    isa.lanes(),
                    scratch,
                    (matrix.scales(), matrix.columns()),
                    self.run,
                    at(0),
                );
                let bounds = self.tile_bounds(&hidden.hidden, at(0), sums);
                store(row, first..tokens.end.min(first + TILE_OUTPUTS), &bounds);
            }
        }
    }

    fn tile_bounds(
        &self,
        hidden: &Hidden,
        tokens: [usize; TILE_OUTPUTS],
        sums: [f32; TILE_OUTPUTS],
    ) -> TileBounds {
        let mut bounds = TileBounds::default();
        for part in 0..TILE_OUTPUTS {
            let logit = f64::from(sums[part]);
            let bound = f64::from(self.norms[tokens[part]]) * hidden.by_norm + hidden.underflow;
            let margin = bound + ((logit.abs() + bound) * BOUND_ERROR + MIN_ERROR);
            bounds[0][part] = to_f32(logit - margin);
            bounds[1][part] = to_f32(logit + margin);
        }
        bounds
    }
}

/// Requests the scales of some rows.
fn request_scales<D: TernaryDot>(isa: D, matrix: &TernaryMatrix, rows: Range<usize>) {
    if let Scales::ColumnGroups { columns, values } = matrix.scales() {
        let groups = matrix.columns().div_ceil(*columns);
        let scales = &values[rows.start * groups..rows.end * groups];
        isa.columns().prefetch(bytemuck::cast_slice(scales));
    }
}
