//! A ternary table as its own screen: its codes are exact, so that only the hidden row is taken as integers.
//!
//! `w·x̂` is a sum over runs of columns, each an integer below 2^24, in `f32`. The logit of the definition is no
//! farther from it than
//!
//! ```text
//! ‖w‖ ‖x−x̂‖  +  (γ + γ_runs) ‖w‖ ‖x‖  +  underflows
//! ```
//!
//! with `γ_runs` for the roundings of that sum, and `‖w‖` from above: as if no weight were zero.

use std::ops::Range;

use setun_ops::{
    TernaryMatrix,
    ternary::{BLOCK_COLUMNS, padded_columns},
    ternary_matmul::common_group,
};

use super::{
    BOUND_ERROR, Hidden, Screen,
    numbers::{MIN_ERROR, ROUND_UP, columns_to_f64, to_f32, up},
};
use crate::{
    group_scratch::GroupScratch,
    memory::zeroed,
    scaled_runs::{RUNS, scaled},
    ternary_dot::{TILE_OUTPUTS, TernaryDot},
};

/// Largest weight scale: a run's product with it is finite in `f32`, and so are their sums.
const MAX_SCALE: f32 = 1e28;

/// A hidden row as int8 planes, ready for the screen of a ternary table.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TernaryHidden<'a> {
    pub(crate) hidden: Hidden,
    /// High and low bytes, `[columns]` each.
    pub(crate) planes: [&'a [i8]; 2],
    /// Sums of the integers of each run.
    pub(crate) sums: &'a [i32],
}

/// Lower and upper bounds of the logits of a tile.
pub(crate) type TileBounds = [[f32; TILE_OUTPUTS]; 2];

impl Screen {
    /// None where a scale is so large that sums might not be finite, or there is no memory.
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

    /// Sums of the integers of each run of a hidden row.
    pub(crate) fn add_runs(&self, [high, low]: [&[i8]; 2], sums: &mut [i32]) {
        let pairs = high.chunks(self.run).zip(low.chunks(self.run));
        for ((high, low), sum) in pairs.zip(sums) {
            let integers = high.iter().zip(low).map(|(&a, &b)| 256 * i32::from(a) + i32::from(b));
            *sum = integers.sum();
        }
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
        let runs = self.columns / self.run;
        scratch.take(self.runs);
        // Beyond the last run is what other products left there.
        scratch.t[..runs].fill([1.0; TILE_OUTPUTS]);
        scratch.t[runs..].fill([0.0; TILE_OUTPUTS]);
        let far = TILE_OUTPUTS * isa.tiles_ahead();
        for (row, hidden) in hidden.iter().enumerate() {
            for (of_tile, &sum) in scratch.sums.iter_mut().zip(hidden.sums) {
                *of_tile = [sum; TILE_OUTPUTS];
            }
            for first in tokens.clone().step_by(TILE_OUTPUTS) {
                // Beyond the last token it is repeated.
                let at = |ahead: usize| -> [usize; TILE_OUTPUTS] {
                    std::array::from_fn(|part| (first + ahead + part).min(tokens.end - 1))
                };
                let (weights, ahead) =
                    (at(0).map(|at| matrix.row(at)), at(far).map(|at| matrix.row(at)));
                let [high, low] = hidden.planes;
                isa.run_dots(weights, ahead, low, self.run, &mut scratch.low);
                isa.run_dots(weights, ahead, high, self.run, &mut scratch.dots);
                let pairs = scratch.dots[..runs].as_flattened_mut().iter_mut();
                for (high, low) in pairs.zip(scratch.low.as_flattened()) {
                    *high = 256 * *high + low;
                }
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
            let logit = f64::from(sums[part]) * hidden.scale;
            let bound = f64::from(self.norms[tokens[part]]) * hidden.by_norm + hidden.underflow;
            let margin = bound + ((logit.abs() + bound) * BOUND_ERROR + MIN_ERROR);
            bounds[0][part] = to_f32(logit - margin);
            bounds[1][part] = to_f32(logit + margin);
        }
        bounds
    }
}
