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

mod block_bounds;
mod closer;
mod codes;
mod hidden;
mod numbers;

pub(crate) use block_bounds::{BLOCK_TOKENS, BOUNDS_BYTES, Bounds};
pub(crate) use hidden::Hidden;

use std::ops::Range;

use fearless_simd::prelude::*;
use setun_ops::{DenseMatrix, aligned::Aligned, dense::DenseValues, ternary::MAX_COLUMNS};

use self::{
    block_bounds::{BlockBounds, BlockDots},
    codes::{Codes, RUN, screen_row},
};
use crate::{
    isa::{Isa, with_token},
    memory::zeroed,
    screen_dot::{Dots, MAX_TILE_HIDDEN, ScreenDot, TILE_TOKENS},
    split::{Claims, Grid},
    team::Crew,
    ternary_dot::TernaryDot,
};

/// Rows of coarse codes that memory is asked for beforehand: one takes less time than memory.
const COARSE_AHEAD: usize = 3;

/// Most hidden rows that meet a row of codes together.
pub(crate) const MAX_HIDDEN_ROWS: usize = 16;

/// The sums of four blocks.
type BlocksDots = [BlockDots; TILE_TOKENS];

/// Which codes of a table a pass reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pass {
    /// All bits.
    Whole,
    /// The coarse plane, of a screen that [has it](Screen::has_planes).
    Coarse,
}

/// A table as 7-bit integers with bounds.
#[derive(Debug)]
pub(crate) struct Screen {
    codes: Codes,
    blocks: Aligned<BlockBounds>, // [rows / BLOCK_TOKENS, rounded up]
    largest_norm: f64,            // ≥ ‖w‖ of every row
}

impl Screen {
    /// The screen of a table; none for one that is small already (int8, ternary), is not finite
    /// or so large that its norms are not, or where there is no memory for it. The head then
    /// runs in full.
    pub(crate) fn new(table: &DenseMatrix, isa: Isa, crew: &Crew<'_>) -> Option<Self> {
        let small =
            matches!(table.values(), DenseValues::Int8Rows { .. } | DenseValues::Ternary(_));
        if small || table.columns() == 0 || table.columns() > MAX_COLUMNS {
            return None;
        }
        let rows = table.rows();
        let mut codes = Codes::new(rows, table.columns())?;
        let mut blocks: Aligned<BlockBounds> =
            zeroed(rows.div_ceil(BLOCK_TOKENS), "a screen").ok()?;
        let has_planes = codes.has_planes();
        let writer = codes.writer();
        let claims =
            Claims::new((codes.runs(), Grid::new(&mut blocks, 1).tiles(RUN / BLOCK_TOKENS, 1)));
        crew.run(&|_| {
            let (mut widened, mut writer) = (vec![0.0; table.columns()], writer.clone());
            while let Some((_, (mut run, mut blocks))) = claims.next() {
                for (row, token) in writer.tokens(&run).enumerate() {
                    table.widen_row(token, &mut widened);
                    let bounds = writer.write(run.row(0), row, |codes| {
                        with_token!(isa, token => {
                            let lanes = token.lanes();
                            lanes.vectorize(
                                #[inline(always)]
                                || screen_row(&widened, codes, has_planes),
                            )
                        })
                    });
                    blocks.row(row / BLOCK_TOKENS)[0].set(row % BLOCK_TOKENS, bounds);
                }
            }
        });
        let norms = blocks.iter().flat_map(BlockBounds::norms);
        let finite = norms.clone().all(f64::is_finite);
        let largest_norm = norms.fold(0.0, f64::max);
        finite.then_some(Self { codes, blocks, largest_norm })
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        self.codes.bytes() + size_of_val(&*self.blocks)
    }

    /// Padded columns: the length of a hidden row's plane.
    pub(crate) fn columns(&self) -> usize {
        self.codes.columns()
    }

    /// Whether there is a pass over coarse codes.
    pub(crate) fn has_planes(&self) -> bool {
        self.codes.has_planes()
    }

    /// Bounds of the logits of a run of tokens, which begins with a block, for up to
    /// [`MAX_HIDDEN_ROWS`] rows. `store` gets them for each hidden row and block; beyond the run they
    /// are to be ignored. `unpacked` is memory to work in, [`TILE_TOKENS`] rows of a screen with planes.
    ///
    /// Four blocks go together, a quarter of the run apart: a processor reads ahead in each of
    /// four pages, and so four times as far as in one.
    #[inline(always)]
    pub(crate) fn bounds<D: ScreenDot>(
        &self,
        (isa, pass): (D, Pass),
        tokens: Range<usize>,
        hidden: &[Hidden],
        planes: &[[&[i8]; 2]],
        unpacked: &mut [u8],
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
            self.blocks_dots((isa, pass), blocks, planes, unpacked, &mut dots);
            for (part, block) in blocks.into_iter().enumerate() {
                let run = block * BLOCK_TOKENS..tokens.end.min((block + 1) * BLOCK_TOKENS);
                let known = &self.blocks[block];
                for (row, (hidden, dots)) in hidden.iter().zip(&dots).enumerate() {
                    let bounds = if pass == Pass::Coarse && self.has_planes() {
                        known.coarse_bounds(isa.lanes(), hidden, &dots[part])
                    } else {
                        known.bounds(isa.lanes(), hidden, &dots[part])
                    };
                    store(row, run.clone(), &bounds);
                }
            }
        }
    }

    /// The sums of four blocks with some hidden rows.
    #[inline(always)]
    fn blocks_dots<D: ScreenDot>(
        &self,
        (isa, pass): (D, Pass),
        blocks: [usize; TILE_TOKENS],
        planes: &[[&[i8]; 2]],
        unpacked: &mut [u8],
        blocks_dots: &mut [BlocksDots; MAX_HIDDEN_ROWS],
    ) {
        for index in 0..BLOCK_TOKENS {
            let tokens = blocks.map(|block| block * BLOCK_TOKENS + index);
            let next = tokens.map(|token| token + 1);
            if !self.has_planes() {
                let codes = [tokens, next].map(|tokens| tokens.map(|token| self.codes.row(token)));
                tile_dots(isa, codes, index, planes, blocks_dots);
                continue;
            }
            if let (Pass::Coarse, [planes]) = (pass, planes) {
                let ahead = tokens.map(|token| self.codes.coarse(token + COARSE_AHEAD));
                let codes = tokens.map(|token| self.codes.coarse(token));
                put(&mut blocks_dots[0], index, isa.coarse_dots(codes, ahead, *planes));
            } else {
                let ahead = next.map(|token| self.codes.coarse(token));
                let codes = self.codes.unpack((isa, pass), tokens, unpacked);
                tile_dots(isa, [codes, ahead], index, planes, blocks_dots);
            }
        }
    }
}

/// The sums of four rows of codes, those of an index in their blocks, with some hidden rows.
#[inline(always)]
fn tile_dots<D: ScreenDot>(
    isa: D,
    [codes, next]: [[&[u8]; TILE_TOKENS]; 2],
    index: usize,
    planes: &[[&[i8]; 2]],
    blocks_dots: &mut [BlocksDots; MAX_HIDDEN_ROWS],
) {
    let parts = planes.len().div_ceil(D::TILE_HIDDEN);
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
        for (blocks_dots, dots) in blocks_dots[rows.clone()].iter_mut().zip(dots) {
            put(blocks_dots, index, dots);
        }
    }
}

/// Puts the sums of a tile into those of its blocks.
#[inline(always)]
fn put(blocks_dots: &mut BlocksDots, index: usize, [high, low]: Dots) {
    for (block, (high, low)) in blocks_dots.iter_mut().zip(high.into_iter().zip(low)) {
        block[0][index] = high;
        block[1][index] = low;
    }
}

#[cfg(test)]
mod tests;
