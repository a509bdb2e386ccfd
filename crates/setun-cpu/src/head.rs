//! `head` over lanes; defined in [`setun_ops::head`].
//!
//! Members claim runs of tokens. Four rows of the table at a time, so that their sums hide each
//! other's latency; each row is widened in registers.

use std::ops::Range;

use fearless_simd::prelude::*;
use setun_ops::{
    DenseMatrix, TernaryMatrix,
    dense::DenseValues,
    op::{BufferId, WeightId},
};

use crate::{
    lanes::{Element, dots, has_many_registers, tile_dots},
    split::{Grid, Tile},
    step::{Buffers, Floats},
    ternary_dot::TernaryDot,
    ternary_rows::widen_ternary_row,
    walk::Walk,
};

/// Tokens that a member claims at once.
const RUN: usize = 64;

/// Rows of the table that meet a hidden row together.
const TILE_TOKENS: usize = 4;

impl<D: TernaryDot> Walk<'_, D> {
    pub(crate) fn head(&self, buffers: &mut Buffers, x: BufferId, table: WeightId, out: BufferId) {
        let (rows, table) = (self.rows(out), self.weights.dense(table));
        buffers.write_floats(out, |buffers, out| {
            self.logits(table, buffers.floats(x), 0..rows, &mut out.values[..rows * out.width]);
        });
    }

    /// Logits of some rows of `x`: `[rows, vocab]`.
    pub(crate) fn logits(
        &self,
        table: &DenseMatrix,
        x: &Floats,
        rows: Range<usize>,
        out: &mut [f32],
    ) {
        self.products(table, x, rows, Grid::new(out, table.rows()));
    }

    /// Products of some rows of `x` with all rows of a table, to a window `[rows, table rows]`.
    pub(crate) fn products(
        &self,
        table: &DenseMatrix,
        x: &Floats,
        rows: Range<usize>,
        out: Grid<'_, f32>,
    ) {
        let simd = self.isa.lanes();
        let x = Rows { x, first: rows.start };
        let out = out.tiles(rows.len().max(1), RUN);
        self.each(out, |scratch, _, mut tile| match table.values() {
            DenseValues::F32(values) => logits(simd, x, values, None, &mut tile),
            DenseValues::F16(values) => logits(simd, x, values, None, &mut tile),
            DenseValues::Bf16(values) => logits(simd, x, values, None, &mut tile),
            DenseValues::Int8Rows { codes, scales } => {
                logits(simd, x, codes, Some(scales), &mut tile);
            }
            DenseValues::Ternary(matrix) => {
                ternary_logits(simd, x, matrix, &mut scratch.row[..x.width()], &mut tile);
            }
        });
    }
}

/// The hidden rows from `first` on.
#[derive(Clone, Copy)]
struct Rows<'a> {
    x: &'a Floats,
    first: usize,
}

impl<'a> Rows<'a> {
    fn width(self) -> usize {
        self.x.width
    }

    fn row(self, row: usize) -> &'a [f32] {
        self.x.row(self.first + row)
    }
}

/// Logits of a run of tokens for all rows.
fn logits<S: Simd, E: Element>(
    simd: S,
    x: Rows<'_>,
    table: &[E],
    scales: Option<&[f32]>,
    tile: &mut Tile<'_, f32>,
) {
    let (tokens, hidden) = (tile.columns(), tile.rows());
    let wide = has_many_registers(simd);
    for first in tokens.clone().step_by(TILE_TOKENS) {
        let run = first..tokens.end.min(first + TILE_TOKENS);
        // Beyond the run's last token it is repeated.
        let rows = std::array::from_fn(|index| {
            &table[(first + index).min(run.end - 1) * x.width()..][..x.width()]
        });
        let within = run.start - tokens.start..run.end - tokens.start;
        let mut store = |row, sums| {
            store(&mut tile.row(row)[within.clone()], sums, scales, run.clone());
        };
        let mut left = hidden.clone();
        while !left.is_empty() {
            left.start += match left.len() {
                4.. if wide => put::<_, _, 4>(simd, x, left.start, rows, &mut store),
                2.. if wide => put::<_, _, 2>(simd, x, left.start, rows, &mut store),
                _ => put::<_, _, 1>(simd, x, left.start, rows, &mut store),
            };
        }
    }
}

/// Stores the logits of a tile of this many hidden rows, and says how many these are.
fn put<S: Simd, E: Element, const M: usize>(
    simd: S,
    x: Rows<'_>,
    first: usize,
    rows: [&[E]; TILE_TOKENS],
    mut store: impl FnMut(usize, [f32; TILE_TOKENS]),
) -> usize {
    let x: [&[f32]; M] = std::array::from_fn(|row| x.row(first + row));
    let sums = simd.vectorize(
        #[inline(always)]
        || tile_dots(simd, x, rows),
    );
    for (row, sums) in (first..).zip(sums) {
        store(row, sums);
    }
    M
}

fn store(y: &mut [f32], sums: [f32; TILE_TOKENS], scales: Option<&[f32]>, run: Range<usize>) {
    match scales {
        None => y.copy_from_slice(&sums[..run.len()]),
        Some(scales) => {
            for (y, (sum, scale)) in y.iter_mut().zip(sums.iter().zip(&scales[run])) {
                *y = scale * sum;
            }
        }
    }
}

/// The logits of some tokens of a float table, `[tokens]`.
pub(crate) fn logits_of<S: Simd, E: Element>(
    simd: S,
    x: &[f32],
    table: &[E],
    tokens: &[u32],
    out: &mut [f32],
) {
    for (tokens, out) in tokens.chunks(TILE_TOKENS).zip(out.chunks_mut(TILE_TOKENS)) {
        let rows = std::array::from_fn(|index| {
            let token = tokens[index.min(tokens.len() - 1)] as usize;
            &table[token * x.len()..][..x.len()]
        });
        out.copy_from_slice(&dots_of(simd, x, rows)[..out.len()]);
    }
}

fn dots_of<S: Simd, E: Element>(
    simd: S,
    x: &[f32],
    rows: [&[E]; TILE_TOKENS],
) -> [f32; TILE_TOKENS] {
    simd.vectorize(
        #[inline(always)]
        || dots(simd, x, rows),
    )
}

/// The logits of some tokens of a ternary table, `[tokens]`.
pub(crate) fn ternary_logits_of<S: Simd>(
    simd: S,
    x: &[f32],
    table: &TernaryMatrix,
    widened: &mut [f32],
    tokens: &[u32],
    out: &mut [f32],
) {
    for (&token, out) in tokens.iter().zip(out) {
        widen_ternary_row(simd, table, token as usize, widened);
        let [sum] = simd.vectorize(
            #[inline(always)]
            || dots(simd, x, [&*widened]),
        );
        *out = sum;
    }
}

/// Logits of a ternary table, whose rows are widened with their scales first.
fn ternary_logits<S: Simd>(
    simd: S,
    x: Rows<'_>,
    table: &TernaryMatrix,
    widened: &mut [f32],
    tile: &mut Tile<'_, f32>,
) {
    let tokens = tile.columns();
    for token in tokens.clone() {
        widen_ternary_row(simd, table, token, widened);
        for row in tile.rows() {
            let [sum] = simd.vectorize(
                #[inline(always)]
                || dots(simd, x.row(row), [&*widened]),
            );
            tile.row(row)[token - tokens.start] = sum;
        }
    }
}
