//! Codes of a screen in memory: bytes, or planes of a large table.

use std::ops::Range;

use fearless_simd::prelude::*;
use setun_ops::{
    aligned::Aligned,
    screen_dot::{MAX_TABLE, SCREEN_COLUMNS, ZERO_CODE, row_bytes},
    screen_planes::{
        ANY_PLANES, COARSE_BYTES, FINE_BYTES, PLANE_BLOCK, coarse_codes, has_planes, pack_planes,
        plane_columns, whole_codes,
    },
};

use super::{
    Pass,
    block_bounds::RowBounds,
    hidden::COARSE_ZERO,
    numbers::{ROUND_UP, largest_magnitude, round, sum_pairs, to_i32, up},
};
use crate::{
    memory::zeroed_bytes,
    screen_dot::{ScreenDot, TILE_TOKENS},
    split::{Grid, Tile},
};

/// Rows whose codes lie together, and are made together.
pub(super) const RUN: usize = 64;

/// The codes of a table. Of planes, the coarse codes of a run are followed by its fine ones.
#[derive(Debug)]
pub(super) struct Codes {
    rows: usize,
    columns: usize, // padded
    has_planes: bool,
    bytes: Aligned<u8>, // [rows, row_bytes]
}

impl Codes {
    /// Room for the codes of a table `[rows, columns]`.
    pub(super) fn new(rows: usize, columns: usize) -> Option<Self> {
        let len = rows.checked_mul(row_bytes(rows, columns))?;
        let has_planes = has_planes(rows, columns);
        let columns = if has_planes {
            plane_columns(columns)
        } else {
            columns.next_multiple_of(SCREEN_COLUMNS)
        };
        let bytes = zeroed_bytes(len, "a screen").ok()?;
        Some(Self { rows, columns, has_planes, bytes })
    }

    /// Bytes of memory.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    #[cfg(test)]
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Padded columns of a row.
    pub(super) fn columns(&self) -> usize {
        self.columns
    }

    pub(super) fn has_planes(&self) -> bool {
        ANY_PLANES && self.has_planes
    }

    /// The codes of a token as bytes, where there are no planes; beyond the last it is repeated.
    pub(super) fn row(&self, token: usize) -> &[u8] {
        &self.bytes[token.min(self.rows - 1) * self.columns..][..self.columns]
    }

    /// The coarse codes of a token; beyond the last it is repeated.
    pub(super) fn coarse(&self, token: usize) -> &[u8] {
        let token = token.min(self.rows - 1);
        let (first, _) = self.run(token);
        let row = self.coarse_bytes();
        &self.bytes[first + token % RUN * row..][..row]
    }

    /// The fine codes of a token likewise.
    pub(super) fn fine(&self, token: usize) -> &[u8] {
        let token = token.min(self.rows - 1);
        let (first, rows) = self.run(token);
        let row = self.columns / PLANE_BLOCK * FINE_BYTES;
        &self.bytes[first + rows * self.coarse_bytes() + token % RUN * row..][..row]
    }

    /// Unpacks the codes of a tile for a pass, and requests the fine codes that come next.
    #[inline(always)]
    pub(super) fn unpack<'a, D: ScreenDot>(
        &self,
        (isa, pass): (D, Pass),
        tokens: [usize; TILE_TOKENS],
        unpacked: &'a mut [u8],
    ) -> [&'a [u8]; TILE_TOKENS] {
        for (token, codes) in tokens.into_iter().zip(unpacked.chunks_exact_mut(self.columns)) {
            let (coarse, fine) = (self.coarse(token), self.fine(token));
            isa.lanes().vectorize(
                #[inline(always)]
                || match pass {
                    Pass::Coarse => coarse_codes(coarse, codes),
                    Pass::Whole => whole_codes(coarse, fine, codes),
                },
            );
            if pass == Pass::Whole {
                isa.request(self.fine(token + 1));
            }
        }
        std::array::from_fn(|row| &unpacked[row * self.columns..][..self.columns])
    }

    /// Where the run of a token begins, and its rows.
    fn run(&self, token: usize) -> (usize, usize) {
        let first = token - token % RUN;
        (first * self.row_bytes(), RUN.min(self.rows - first))
    }

    fn coarse_bytes(&self) -> usize {
        self.columns / PLANE_BLOCK * COARSE_BYTES
    }

    fn row_bytes(&self) -> usize {
        if self.has_planes() { self.columns / 8 * 7 } else { self.columns }
    }

    /// The codes in runs.
    pub(super) fn runs(&mut self) -> Grid<'_, u8> {
        let (all, run) = (self.bytes.len(), RUN * self.row_bytes());
        Grid::new(&mut self.bytes, all).tiles(1, run.max(1))
    }

    /// What writes the rows of a run.
    pub(super) fn writer(&self) -> RunWriter {
        let unpacked = vec![ZERO_CODE; if self.has_planes() { self.columns } else { 0 }];
        RunWriter { columns: self.columns, row_bytes: self.row_bytes(), unpacked }
    }
}

/// Writes rows of codes into a run.
#[derive(Clone)]
pub(super) struct RunWriter {
    columns: usize,
    row_bytes: usize,
    unpacked: Vec<u8>, // [columns], where there are planes
}

impl RunWriter {
    /// The tokens of a run.
    pub(super) fn tokens(&self, run: &Tile<'_, u8>) -> Range<usize> {
        let Range { start, end } = run.columns();
        start / self.row_bytes..end / self.row_bytes
    }

    /// Has `fill` make the codes of a row of a run, and stores them.
    #[inline(always)]
    pub(super) fn write<T>(
        &mut self,
        run: &mut [u8],
        row: usize,
        fill: impl FnOnce(&mut [u8]) -> T,
    ) -> T {
        if !ANY_PLANES || self.unpacked.is_empty() {
            return fill(&mut run[row * self.columns..][..self.columns]);
        }
        let made = fill(&mut self.unpacked);
        let blocks = self.columns / PLANE_BLOCK;
        let (coarse_row, fine_row) = (blocks * COARSE_BYTES, blocks * FINE_BYTES);
        let (coarse, fine) = run.split_at_mut(run.len() / self.row_bytes * coarse_row);
        let coarse = &mut coarse[row * coarse_row..][..coarse_row];
        pack_planes(&self.unpacked, coarse, &mut fine[row * fine_row..][..fine_row]);
        made
    }
}

/// A row as codes, and its bounds: not finite if the row is not. The same on every level, which
/// decides how many elements meet at once and changes none.
#[inline(always)]
pub(super) fn screen_row(row: &[f32], codes: &mut [u8], has_planes: bool) -> RowBounds {
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
    let error = |w: f32, value: f64| {
        let error = f64::from(w) - f64::from(scale) * value;
        error * error
    };
    let whole = |w: f32, code: u8| error(w, f64::from(code) - f64::from(ZERO_CODE));
    let whole = sum_pairs(row, codes, whole).sqrt();
    let coarse = |w: f32, code: u8| error(w, f64::from(code & !3) - COARSE_ZERO);
    let coarse = if has_planes { sum_pairs(row, codes, coarse).sqrt() } else { 0.0 };
    let norm = f64::from(scale) * f64::from(squares).sqrt();
    RowBounds {
        scale,
        error: up(whole * ROUND_UP),
        norm: up(norm * ROUND_UP),
        coarse: up(coarse * ROUND_UP),
    }
}

#[inline(always)]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "1..=127")]
fn to_code(integer: i32) -> u8 {
    (integer + i32::from(ZERO_CODE)) as u8
}
