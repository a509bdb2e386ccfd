//! The screen before a head: bounds of all logits from few bits, proven in `docs/numerics.md`.
//!
//! A row `w` of the table is kept as `ŵ = scale × integer`, with integers of 7 bits; a hidden row
//! `x` is taken as `x̂ = t × integer`, with integers of 16 bits in two int8 planes. Their product
//! `ŵ·x̂` is exact in integers, and the logit of the definition is no farther from it than
//!
//! ```text
//! ‖w−ŵ‖ ‖x‖  +  ‖ŵ‖ ‖x−x̂‖  +  γ ‖w‖ ‖x‖  +  columns × 2^−149
//! ```
//!
//! where `γ` covers the roundings of the definition's own sum, and the last term its underflows.
//! Norms are rounded up, and `‖w‖ ≤ ‖ŵ‖ + ‖w−ŵ‖`, so two numbers a row are enough.

mod hidden;
#[cfg(not(target_family = "wasm"))]
mod image;
mod numbers;
mod ternary;

pub(crate) use hidden::Hidden;
pub(crate) use ternary::{TernaryHidden, TileBounds};

use std::ops::Range;

use bytemuck::{Pod, Zeroable};
use fearless_simd::prelude::*;
use setun_ops::{
    DenseMatrix,
    aligned::Aligned,
    dense::DenseValues,
    screen_dot::{MAX_TABLE, SCREEN_COLUMNS, ZERO_CODE},
    ternary::MAX_COLUMNS,
};

use self::numbers::{
    MIN_ERROR, ROUND_UP, largest_magnitude, power, round, sum_pairs, to_f32, to_i32, up,
};
use crate::{
    isa::{Isa, with_token},
    memory::{zeroed, zeroed_bytes},
    screen_dot::{Dots, MAX_TILE_HIDDEN, ScreenDot, TILE_TOKENS},
    split::{Claims, Grid},
    team::Crew,
    ternary_dot::TernaryDot,
};

/// What a bound is enlarged by, relative to the logit and itself: more than what its evaluation
/// in `f64` and its conversion to `f32` can lose.
const BOUND_ERROR: f64 = power(-22);

/// Rows of a table that a member makes ready at once.
const RUN: usize = 64;

/// Neighbouring tokens whose bounds are found together: as many as vectors have lanes of `f64`.
pub(crate) const BLOCK_TOKENS: usize = 8;

/// Most hidden rows that meet a row of codes together.
pub(crate) const MAX_HIDDEN_ROWS: usize = 16;

/// The sums of a block's rows with each plane of a hidden row.
type BlockDots = [[i32; BLOCK_TOKENS]; 2];

/// Those of four blocks.
type BlocksDots = [BlockDots; TILE_TOKENS];

/// Lower and upper bounds of the logits of a block.
pub(crate) type Bounds = [[f32; BLOCK_TOKENS]; 2];

/// A table as 7-bit integers with bounds.
#[derive(Debug)]
pub(crate) struct Screen {
    rows: usize,
    columns: usize,               // padded
    codes: Aligned<u8>,           // [rows, columns]
    blocks: Aligned<BlockBounds>, // [rows / BLOCK_TOKENS, rounded up]
    norms: Aligned<f32>,          // ≥ ‖w‖, [rows], of a ternary table, which has no other codes
    run: usize,                   // columns that have one scale in a ternary table
    runs: usize,                  // of a row of it
    largest_norm: f64,            // ≥ ‖w‖ of every row
}

/// What is known of a block of rows; zeros beyond the last.
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
#[repr(C, align(64))]
struct BlockBounds {
    scale: [f32; BLOCK_TOKENS],
    error: [f32; BLOCK_TOKENS], // ≥ ‖w−ŵ‖
    norm: [f32; BLOCK_TOKENS],  // ≥ ‖ŵ‖
    padding: [f32; BLOCK_TOKENS],
}

/// Bytes of what is known of a block.
pub(crate) const BOUNDS_BYTES: usize = size_of::<BlockBounds>();

/// What is known of a row.
#[derive(Clone, Copy)]
struct RowBounds {
    scale: f32,
    error: f32,
    norm: f32,
}

impl Screen {
    /// The screen of a table; none for one that is small already (int8), is not finite
    /// or so large that its norms are not, or where there is no memory for it. The head then
    /// runs in full.
    pub(crate) fn new(table: &DenseMatrix, isa: Isa, crew: &Crew<'_>) -> Option<Self> {
        if table.columns() == 0 || table.columns() > MAX_COLUMNS {
            return None;
        }
        match table.values() {
            DenseValues::Int8Rows { .. } => return None,
            DenseValues::Ternary(matrix) => return Self::ternary(matrix),
            DenseValues::F32(_) | DenseValues::F16(_) | DenseValues::Bf16(_) => {}
        }
        let columns = table.columns().next_multiple_of(SCREEN_COLUMNS);
        let mut codes = zeroed_bytes(table.rows().checked_mul(columns)?, "a screen").ok()?;
        let mut blocks: Aligned<BlockBounds> =
            zeroed(table.rows().div_ceil(BLOCK_TOKENS), "a screen").ok()?;
        let claims = Claims::new((
            Grid::new(&mut codes, columns).tiles(RUN, columns),
            Grid::new(&mut blocks, 1).tiles(RUN / BLOCK_TOKENS, 1),
        ));
        crew.run(&|_| {
            let mut widened = vec![0.0; table.columns()];
            while let Some((_, (mut codes, mut blocks))) = claims.next() {
                let first = codes.rows().start;
                for row in 0..codes.rows().len() {
                    table.widen_row(first + row, &mut widened);
                    let codes = codes.row(row);
                    let bounds = with_token!(isa, token => {
                        let lanes = token.lanes();
                        lanes.vectorize(#[inline(always)] || screen_row(&widened, codes))
                    });
                    blocks.row(row / BLOCK_TOKENS)[0].set(row % BLOCK_TOKENS, bounds);
                }
            }
        });
        let norms = |block: &BlockBounds| -> [f64; BLOCK_TOKENS] {
            std::array::from_fn(|row| f64::from(block.norm[row]) + f64::from(block.error[row]))
        };
        let norms = blocks.iter().flat_map(norms);
        let finite = norms.clone().all(f64::is_finite);
        let largest_norm = norms.fold(0.0, f64::max);
        let screen = Self::of_codes(table.rows(), columns, codes, blocks, largest_norm);
        finite.then_some(screen)
    }

    /// The screen of a table of floats.
    fn of_codes(
        rows: usize,
        columns: usize,
        codes: Aligned<u8>,
        blocks: Aligned<BlockBounds>,
        largest_norm: f64,
    ) -> Self {
        let norms = Aligned::default();
        Self { rows, columns, codes, blocks, norms, run: 0, runs: 0, largest_norm }
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.codes) + size_of_val(&*self.blocks) + size_of_val(&*self.norms)
    }

    /// Padded columns: the length of a plane.
    pub(crate) fn columns(&self) -> usize {
        self.columns
    }

    /// Bounds of the logits of a run of tokens, which begins with a block, for up to
    /// [`MAX_HIDDEN_ROWS`] rows. `store` gets them for each hidden row and block; beyond the run they
    /// are to be ignored.
    ///
    /// Four blocks go together, a quarter of the run apart: a processor reads ahead in each of
    /// four pages, and so four times as far as in one.
    #[inline(always)]
    pub(crate) fn bounds<D: ScreenDot>(
        &self,
        isa: D,
        tokens: Range<usize>,
        hidden: &[Hidden],
        planes: &[[&[i8]; 2]],
        mut store: impl FnMut(usize, Range<usize>, &Bounds),
    ) {
        let first = tokens.start / BLOCK_TOKENS;
        let count = tokens.len().div_ceil(BLOCK_TOKENS);
        let steps = count.div_ceil(TILE_TOKENS);
        let mut dots = [BlocksDots::default(); MAX_HIDDEN_ROWS];
        for step in 0..steps {
            // Beyond the last block it is repeated.
            let blocks: [usize; TILE_TOKENS] =
                std::array::from_fn(|part| first + (part * steps + step).min(count - 1));
            self.blocks_dots(isa, blocks, planes, &mut dots);
            for (part, block) in blocks.into_iter().enumerate() {
                let run = block * BLOCK_TOKENS..tokens.end.min((block + 1) * BLOCK_TOKENS);
                for (row, (hidden, dots)) in hidden.iter().zip(&dots).enumerate() {
                    let bounds = self.blocks[block].bounds(isa.lanes(), hidden, &dots[part]);
                    store(row, run.clone(), &bounds);
                }
            }
        }
    }

    /// The sums of four blocks with some hidden rows.
    #[inline(always)]
    fn blocks_dots<D: ScreenDot>(
        &self,
        isa: D,
        blocks: [usize; TILE_TOKENS],
        planes: &[[&[i8]; 2]],
        blocks_dots: &mut [BlocksDots; MAX_HIDDEN_ROWS],
    ) {
        let parts = planes.len().div_ceil(D::TILE_HIDDEN);
        for index in 0..BLOCK_TOKENS {
            let codes = blocks.map(|block| self.row(block * BLOCK_TOKENS + index));
            let next = blocks.map(|block| self.row(block * BLOCK_TOKENS + index + 1));
            let mut rows = 0..0;
            for part in 0..parts {
                // As even as can be: two and two rather than three and one.
                rows = rows.end..rows.end + (planes.len() - rows.end).div_ceil(parts - part);
                // Each row of what comes next is requested in one of the parts.
                let ahead = std::array::from_fn(|row| {
                    if row * parts / TILE_TOKENS == part { next[row] } else { codes[row] }
                });
                let mut dots = [Dots::default(); MAX_TILE_HIDDEN];
                isa.screen_dots(codes, ahead, &planes[rows.clone()], &mut dots);
                for (blocks_dots, [high, low]) in blocks_dots[rows.clone()].iter_mut().zip(dots) {
                    for (block, (high, low)) in
                        blocks_dots.iter_mut().zip(high.into_iter().zip(low))
                    {
                        block[0][index] = high;
                        block[1][index] = low;
                    }
                }
            }
        }
    }

    /// The codes of a token; beyond the table's last token it is repeated.
    fn row(&self, token: usize) -> &[u8] {
        &self.codes[token.min(self.rows - 1) * self.columns..][..self.columns]
    }
}

impl BlockBounds {
    fn set(&mut self, index: usize, row: RowBounds) {
        self.scale[index] = row.scale;
        self.error[index] = row.error;
        self.norm[index] = row.norm;
    }

    /// Bounds of the logits of a hidden row, from the sums of both planes.
    #[inline(always)]
    fn bounds<S: Simd>(&self, simd: S, hidden: &Hidden, [high, low]: &BlockDots) -> Bounds {
        simd.vectorize(
            #[inline(always)]
            || {
                let mut bounds = [[0.0; BLOCK_TOKENS]; 2];
                for index in 0..BLOCK_TOKENS {
                    let dot = hidden.dot([high[index], low[index]]);
                    let logit = f64::from(self.scale[index]) * hidden.scale * dot;
                    let bound = f64::from(self.error[index]) * hidden.by_error
                        + f64::from(self.norm[index]) * hidden.by_norm
                        + hidden.underflow;
                    let margin = bound + ((logit.abs() + bound) * BOUND_ERROR + MIN_ERROR);
                    bounds[0][index] = to_f32(logit - margin);
                    bounds[1][index] = to_f32(logit + margin);
                }
                bounds
            },
        )
    }
}

/// A row as codes, and its bounds: not finite if the row is not. The same on every level, which
/// decides how many elements meet at once and changes none.
#[inline(always)]
fn screen_row(row: &[f32], codes: &mut [u8]) -> RowBounds {
    let most = largest_magnitude(row);
    let scale = most / f32::from(MAX_TABLE);
    let (codes, padding) = codes.split_at_mut(row.len());
    padding.fill(ZERO_CODE);
    let divisor = if scale > 0.0 { scale } else { f32::INFINITY };
    let most = f32::from(MAX_TABLE);
    let mut squares = 0;
    for (&w, code) in row.iter().zip(&mut *codes) {
        // A tiny scale is not exact, so a quotient may exceed the range. A NaN becomes 0.
        let integer = to_i32(round((w / divisor).clamp(-most, most)));
        squares += integer * integer;
        *code = to_code(integer);
    }
    let error = |w: f32, code: u8| {
        let integer = f64::from(code) - f64::from(ZERO_CODE);
        let error = f64::from(w) - f64::from(scale) * integer;
        error * error
    };
    let error = sum_pairs(row, codes, error).sqrt();
    let norm = f64::from(scale) * f64::from(squares).sqrt();
    RowBounds { scale, error: up(error * ROUND_UP), norm: up(norm * ROUND_UP) }
}

#[inline(always)]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "1..=127")]
fn to_code(integer: i32) -> u8 {
    (integer + i32::from(ZERO_CODE)) as u8
}

#[cfg(test)]
mod tests;
