//! `ternary_matmul` over a matrix kept by columns: those whose activations are zero are not read.
//!
//! A few rows, as in decode: members claim runs of columns and add up sums of their own, which
//! are put together once all are done. Many rows, as in prefill: members claim rows, so that
//! each sum has one owner. Sums are integers, so it is all the same.

use std::{
    ops::Range,
    sync::{
        PoisonError, RwLock, RwLockWriteGuard,
        atomic::{AtomicUsize, Ordering},
    },
};

use setun_ops::{
    op::{BufferId, Linear},
    ternary::row_bytes,
};

use super::{Residual, Scaling};
use crate::{
    column_sums::{ColumnSums, TILE_COLUMNS, TILE_SUMS},
    member_sums::{GROUP_ROWS, MemberSums, padded_outputs},
    split::{Grid, Tile},
    step::Buffers,
    ternary_columns::TernaryColumns,
    ternary_dot::TernaryDot,
    walk::Walk,
};

/// Most columns of a run: as many as stay in the second-level cache.
const RUN_COLUMNS: usize = 512;

/// A layer by columns with its operands.
struct ColumnsView<'a> {
    matrix: &'a TernaryColumns,
    scaling: Scaling<'a>,
    residual: Residual<'a>,
}

impl<D: TernaryDot> Walk<'_, D> {
    pub(super) fn by_columns(
        &self,
        matrix: &TernaryColumns,
        buffers: &mut Buffers,
        linear: &Linear,
        residual: Option<BufferId>,
        out: BufferId,
        out_column: usize,
    ) {
        let (isa, rows) = (self.isa.columns(), self.rows(out));
        let in_place = residual == Some(out);
        buffers.write_floats(out, |buffers, out| {
            let scaling = self.scaling(buffers, linear, matrix.scales());
            let residual = Residual::new(buffers, residual, in_place);
            let view = ColumnsView { matrix, scaling, residual };
            let width = out.width;
            let out = Grid::new(&mut out.values[..rows * width], width)
                .columns(out_column..out_column + matrix.outputs());
            if rows <= GROUP_ROWS {
                self.few_rows(isa, &view, rows, out);
            } else {
                self.many_rows(isa, &view, out);
            }
        });
    }

    fn few_rows<C: ColumnSums>(
        &self,
        isa: C,
        view: &ColumnsView<'_>,
        rows: usize,
        out: Grid<'_, f32>,
    ) {
        self.sums.iter().for_each(|sums| write(sums).used = false);
        let columns = view.matrix.columns();
        let run = columns.div_ceil(4 * self.crew.threads()).clamp(TILE_COLUMNS, RUN_COLUMNS);
        let next = AtomicUsize::new(0);
        self.crew.run(&|member| {
            let mut sums = write(&self.sums[member]);
            let sums = sums.start(rows * view.padded_outputs());
            loop {
                let first = next.fetch_add(run, Ordering::Relaxed);
                if first >= columns {
                    return;
                }
                let run = first..columns.min(first + run);
                let mut read = [false; RUN_COLUMNS];
                view.add_run(isa, run.clone(), 0..rows, sums, &mut read);
                let unread = read[..run.len()].iter().filter(|&&read| !read).count();
                self.spare(unread * row_bytes(view.matrix.outputs()));
            }
        });
        self.each(out.tiles(rows.max(1), TILE_SUMS), |_, _, mut tile| {
            for row in 0..rows {
                let mut totals = [0; TILE_SUMS];
                for sums in self.sums {
                    let sums = sums.read().unwrap_or_else(PoisonError::into_inner);
                    if sums.used {
                        let row = &sums.values[row * view.padded_outputs()..];
                        take_sums(isa, row, tile.columns(), &mut totals);
                    }
                }
                view.store(row, &totals, tile.columns(), tile.row(row));
            }
        });
    }

    fn many_rows<C: ColumnSums>(&self, isa: C, view: &ColumnsView<'_>, out: Grid<'_, f32>) {
        let (columns, outputs) = (view.matrix.columns(), view.matrix.outputs());
        self.each(out.tiles(GROUP_ROWS, outputs), |scratch, _, mut tile: Tile<'_, f32>| {
            let mut sums = write(&self.sums[scratch.member]);
            let sums = sums.start(tile.rows().len() * view.padded_outputs());
            for first in (0..columns).step_by(RUN_COLUMNS) {
                let run = first..columns.min(first + RUN_COLUMNS);
                view.add_run(isa, run, tile.rows(), sums, &mut [false; RUN_COLUMNS]);
            }
            let first = tile.rows().start;
            for (index, sums) in sums.chunks_exact(view.padded_outputs()).enumerate() {
                for start in (0..outputs).step_by(TILE_SUMS) {
                    let run = start..outputs.min(start + TILE_SUMS);
                    let mut totals = [0; TILE_SUMS];
                    take_sums(isa, sums, run.clone(), &mut totals);
                    let y = &mut tile.row(index)[run.clone()];
                    view.store(first + index, &totals, run, y);
                }
            }
        });
    }
}

impl ColumnsView<'_> {
    fn padded_outputs(&self) -> usize {
        padded_outputs(self.matrix)
    }

    /// Adds a run of columns to the sums of some rows, `[rows, padded_outputs]`, and says which
    /// of them were read.
    fn add_run<C: ColumnSums>(
        &self,
        isa: C,
        run: Range<usize>,
        rows: Range<usize>,
        sums: &mut [i32],
        read: &mut [bool; RUN_COLUMNS],
    ) {
        for (row, sums) in rows.zip(sums.chunks_exact_mut(self.padded_outputs())) {
            let x = &self.scaling.x.row(row)[run.clone()];
            let mut open = [0; RUN_COLUMNS];
            let mut count = 0;
            for (index, &code) in x.iter().enumerate() {
                open[count] = index;
                count += usize::from(code != 0);
                read[index] |= code != 0;
            }
            let mut tiles = open[..count].chunks(TILE_COLUMNS).peekable();
            while let Some(tile) = tiles.next() {
                let columns = self.tile(tile, run.start);
                let ahead = tiles.peek().map_or(columns, |next| self.tile(next, run.start));
                let x = std::array::from_fn(|at| tile.get(at).map_or(0, |&index| x[index]));
                isa.add_columns(columns, ahead, x, sums);
            }
        }
    }

    /// Columns of a tile, counted from `first`. Beyond the last it is repeated.
    fn tile(&self, tile: &[usize], first: usize) -> [&[u8]; TILE_COLUMNS] {
        std::array::from_fn(|at| self.matrix.column(first + tile[at.min(tile.len() - 1)]))
    }

    /// From sums over codes to outputs of a row.
    fn store(&self, row: usize, totals: &[i32], outputs: Range<usize>, y: &mut [f32]) {
        let mut products = [0.0; TILE_SUMS];
        for ((product, &total), output) in products.iter_mut().zip(totals).zip(outputs.clone()) {
            *product = self.scaling.output(total, output, row);
        }
        self.residual.store(row, outputs.clone(), &products[..outputs.len()], y);
    }
}

/// Adds the sums of some outputs to `totals`.
fn take_sums<C: ColumnSums>(
    isa: C,
    sums: &[i32],
    outputs: Range<usize>,
    totals: &mut [i32; TILE_SUMS],
) {
    for (output, total) in outputs.zip(totals) {
        let (index, shift) = isa.place(output);
        *total += sums[index] >> shift;
    }
}

fn write(sums: &RwLock<MemberSums>) -> RwLockWriteGuard<'_, MemberSums> {
    sums.write().unwrap_or_else(PoisonError::into_inner)
}
