//! `head` over lanes; defined in [`setun_ops::head`].
//!
//! Members claim runs of tokens. Four rows of the table at a time, so that their sums hide each
//! other's latency; each row is widened in registers.

use std::ops::Range;

use fearless_simd::prelude::*;
use setun_ops::{
    DenseMatrix,
    dense::DenseValues,
    op::{BufferId, WeightId},
};

use crate::{
    lanes::{Element, dots},
    split::{Grid, Tile},
    step::{Buffers, Floats},
    ternary_dot::TernaryDot,
    walk::Walk,
};

/// Tokens that a member claims at once.
const RUN: usize = 64;

/// Rows of the table that meet a hidden row together.
const TILE_TOKENS: usize = 4;

impl<D: TernaryDot> Walk<'_, D> {
    pub(crate) fn head(&self, buffers: &mut Buffers, x: BufferId, table: WeightId, out: BufferId) {
        let (simd, rows, table) = (self.isa.lanes(), self.rows(out), self.weights.dense(table));
        buffers.write_floats(out, |buffers, out| {
            let (x, vocab) = (buffers.floats(x), out.width);
            let out = Grid::new(&mut out.values[..rows * vocab], vocab).tiles(rows.max(1), RUN);
            self.each(out, |scratch, _, mut tile| match table.values() {
                DenseValues::F32(values) => logits(simd, x, values, None, &mut tile),
                DenseValues::F16(values) => logits(simd, x, values, None, &mut tile),
                DenseValues::Bf16(values) => logits(simd, x, values, None, &mut tile),
                DenseValues::Int8Rows { codes, scales } => {
                    logits(simd, x, codes, Some(scales), &mut tile);
                }
                DenseValues::Ternary(_) => {
                    ternary_logits(simd, x, table, &mut scratch.row[..x.width], &mut tile);
                }
            });
        });
    }
}

/// Logits of a run of tokens for all rows.
fn logits<S: Simd, E: Element>(
    simd: S,
    x: &Floats,
    table: &[E],
    scales: Option<&[f32]>,
    tile: &mut Tile<'_, f32>,
) {
    let tokens = tile.columns();
    for first in tokens.clone().step_by(TILE_TOKENS) {
        let run = first..tokens.end.min(first + TILE_TOKENS);
        // Beyond the run's last token it is repeated.
        let rows = std::array::from_fn(|index| {
            &table[(first + index).min(run.end - 1) * x.width..][..x.width]
        });
        for row in tile.rows() {
            let sums = dots_of(simd, x.row(row), rows);
            let within = run.start - tokens.start..run.end - tokens.start;
            store(&mut tile.row(row)[within], sums, scales, run.clone());
        }
    }
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

/// Logits of a ternary table, whose rows are widened with their scales first.
fn ternary_logits<S: Simd>(
    simd: S,
    x: &Floats,
    table: &DenseMatrix,
    widened: &mut [f32],
    tile: &mut Tile<'_, f32>,
) {
    let tokens = tile.columns();
    for token in tokens.clone() {
        table.widen_row(token, widened);
        for row in tile.rows() {
            let [sum] = simd.vectorize(
                #[inline(always)]
                || dots(simd, x.row(row), [&*widened]),
            );
            tile.row(row)[token - tokens.start] = sum;
        }
    }
}
