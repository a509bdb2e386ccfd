//! `ternary_matmul` for many rows, by panels: members claim panels of outputs for runs of rows,
//! unpack the codes of a panel once, and have all rows pass by.

use std::{ops::Range, slice::Chunks};

use fearless_simd::{f32x16, prelude::*};
use setun_ops::{
    TernaryMatrix,
    op::{BufferId, Linear},
    ternary::{BLOCK_BYTES, BLOCK_COLUMNS, Scales, padded_columns, row_bytes},
};

use super::{LinearView, Residual};
use crate::{
    column_sums::ColumnSums,
    lanes::{LANES, padded},
    quantized::Quantized,
    scratch::PanelScratch,
    split::Grid,
    step::Buffers,
    ternary_dot::TernaryDot,
    ternary_panel::{
        BLOCK_QUADS, Four, MAX_ROWS, MAX_TILE_ROWS, PANEL_OUTPUTS, PanelSums, Quad, UNPACKED_ROWS,
    },
    walk::Walk,
};

/// Fewest rows for which a panel pays where weights have groups of columns.
const FEWEST_GROUPED_ROWS: usize = 4;

/// Most bytes of activations of such rows: all panels pass them while they are in that cache.
const MAX_ACTIVATIONS: usize = 1 << 20;

impl<D: TernaryDot> Walk<'_, D> {
    /// Whether panels pay for a step of this many rows.
    pub(crate) fn has_panels<const N: usize>(&self, rows: usize, layers: [&Linear; N]) -> bool {
        layers.into_iter().all(|layer| {
            let matrix = self.weights.ternary(layer.weight);
            let fewest = D::fewest_rows(matrix.columns());
            let is_grouped = matches!(matrix.scales(), Scales::ColumnGroups { .. });
            // Rows by groups share nothing without a panel.
            rows >= if is_grouped && fewest < usize::MAX { FEWEST_GROUPED_ROWS } else { fewest }
        })
    }

    pub(super) fn by_panels(
        &self,
        buffers: &mut Buffers,
        linear: &Linear,
        residual: Option<BufferId>,
        out: BufferId,
        out_column: usize,
    ) {
        let rows = self.rows(out);
        let in_place = residual == Some(out);
        buffers.write_floats(out, |buffers, out| {
            let linear = self.linear(buffers, linear);
            let residual = Residual::new(buffers, residual, in_place);
            let (outputs, width) = (linear.matrix.rows(), out.width);
            let out = Grid::new(&mut out.values[..rows * width], width)
                .columns(out_column..out_column + outputs)
                .tiles(self.rows_of_panels(rows, linear.matrix), PANEL_OUTPUTS);
            self.each(out, |scratch, _, mut tile| {
                let (panel, outputs, rows) = (&mut scratch.panel, tile.columns(), tile.rows());
                let next = (&linear, outputs.start + self.panels_apart());
                linear.add_up(self.isa, panel, outputs.start, rows.clone(), next);
                for (index, row) in rows.enumerate() {
                    let y = tile.row(index);
                    linear.store(self.isa, panel, index, outputs.clone(), row, &residual, y);
                }
            });
        });
    }

    /// How many rows a member claims at once: as many as it can, so that a panel serves long,
    /// but several claims for each member.
    pub(crate) fn rows_of_panels(&self, rows: usize, matrix: &TernaryMatrix) -> usize {
        let panels = matrix.rows().div_ceil(PANEL_OUTPUTS).max(1);
        let shared = (4 * self.crew.threads()).div_ceil(panels).min(rows.div_ceil(8 * D::ROWS));
        let most = (MAX_ACTIVATIONS / padded_columns(matrix.columns())).clamp(D::ROWS, MAX_ROWS);
        let runs = shared.max(rows.div_ceil(most));
        rows.div_ceil(runs.max(1)).next_multiple_of(D::ROWS).min(MAX_ROWS)
    }

    /// How many outputs lie between panels that a member claims one after the other, most likely.
    pub(crate) fn panels_apart(&self) -> usize {
        PANEL_OUTPUTS * self.crew.threads()
    }
}

impl LinearView<'_> {
    /// Sums over codes of the panel that begins at an output, for some rows. Meanwhile the packed
    /// codes of the panel that comes next, most likely, are requested.
    pub(crate) fn add_up<D: TernaryDot>(
        &self,
        isa: D,
        scratch: &mut PanelScratch,
        first: usize,
        rows: Range<usize>,
        next: (&LinearView<'_>, usize),
    ) {
        if let Some(run) = self.run {
            self.enter_panel(scratch, run, first, rows.len());
        }
        let PanelScratch { quads: memory, sums, outputs, scales } = scratch;
        let sums = &mut sums[..rows.len()];
        if self.run.is_none() {
            sums.fill(PanelSums::default());
        }
        let blocks = self.matrix.columns().div_ceil(BLOCK_COLUMNS);
        // Panels of about the same length, and this many times a few rows.
        let panels = blocks.div_ceil(D::BLOCKS);
        let tiles = rows.len().div_ceil(D::ROWS);
        // Memory is requested evenly: a burst would wait for itself.
        let parts = panels * (PANEL_OUTPUTS / UNPACKED_ROWS + tiles);
        let mut requests = next.0.requests(next.1, parts);
        let mut ask = || {
            for bytes in requests.iter_mut().filter_map(Iterator::next) {
                isa.columns().prefetch(bytes);
            }
        };
        for index in 0..panels {
            let part = blocks * index / panels..blocks * (index + 1) / panels;
            let panel = &mut memory[..part.len() * BLOCK_QUADS];
            for within in (0..PANEL_OUTPUTS).step_by(UNPACKED_ROWS) {
                ask();
                self.unpack(isa, first, within, part.clone(), panel);
            }
            let quads = part.start * BLOCK_QUADS..part.end * BLOCK_QUADS;
            for within in even_parts(rows.len(), tiles) {
                ask();
                let of_rows = rows.start + within.start..rows.start + within.end;
                let mut x: [&[Four]; MAX_TILE_ROWS] = [&[]; MAX_TILE_ROWS];
                for (x, row) in x.iter_mut().zip(of_rows.clone()) {
                    *x = &fours(self.scaling.x, row)[quads.clone()];
                }
                let x = &x[..within.len()];
                if let Some(run) = self.run {
                    let (panel, x) = ((&*panel, part.clone()), (x, of_rows));
                    self.add_runs(isa, run, panel, x, scales, &mut outputs[within]);
                } else {
                    isa.add_rows(panel, x, &mut sums[within]);
                }
            }
        }
    }

    /// Unpacks some blocks of columns of the panel that begins at an output: those of a few
    /// outputs in it.
    fn unpack<D: TernaryDot>(
        &self,
        isa: D,
        first: usize,
        within: usize,
        blocks: Range<usize>,
        panel: &mut [Quad],
    ) {
        let bytes = blocks.start * BLOCK_BYTES..blocks.end * BLOCK_BYTES;
        // Beyond the last output it is repeated.
        let row = |index: usize| (first + within + index).min(self.matrix.rows() - 1);
        let rows = std::array::from_fn(|index| &self.matrix.row(row(index))[bytes.clone()]);
        isa.unpack_rows(rows, within, panel);
    }

    /// The codes and the group scales of the panel that begins at output `first`, each in up to `parts`
    /// parts. Both are empty where there is no such panel.
    fn requests(&self, first: usize, parts: usize) -> [Chunks<'_, u8>; 2] {
        let (columns, bytes) = (self.matrix.columns(), row_bytes(self.matrix.columns()));
        let end = self.matrix.rows().min(first + PANEL_OUTPUTS);
        let first = first.min(end);
        let scales: &[f32] = match self.scaling.scales {
            Scales::ColumnGroups { columns: group, values } => {
                let groups = columns.div_ceil(*group);
                &values[first * groups..end * groups]
            }
            _ => &[],
        };
        [&self.matrix.codes()[first * bytes..end * bytes], bytemuck::cast_slice(scales)]
            .map(|bytes| bytes.chunks(bytes.len().div_ceil(parts).max(1)))
    }

    /// Outputs of a row, which is at an index of what has been added up.
    #[expect(clippy::too_many_arguments, reason = "a place in the panel and one in the output")]
    pub(crate) fn store<D: TernaryDot>(
        &self,
        isa: D,
        panel: &PanelScratch,
        index: usize,
        outputs: Range<usize>,
        row: usize,
        residual: &Residual<'_>,
        y: &mut [f32],
    ) {
        let simd = isa.lanes();
        simd.vectorize(
            #[inline(always)]
            || {
                for (at, y) in y.chunks_mut(LANES).enumerate() {
                    let first = outputs.start + at * LANES;
                    let run = first..first + y.len();
                    let mut out = if self.run.is_some() {
                        let sums = &panel.outputs[index].0.as_chunks().0[at];
                        self.scaling.with_bias(simd, sums, run.clone())
                    } else {
                        let sums = &panel.sums[index].0.as_chunks().0[at];
                        self.scaling.outputs(simd, sums, run.clone(), row)
                    };
                    match residual {
                        Residual::None => {}
                        Residual::InPlace => out += f32x16::from_slice(simd, &padded(y)),
                        Residual::Of(residual) => {
                            let residual = padded(&residual.row(row)[run]);
                            out += f32x16::from_slice(simd, &residual);
                        }
                    }
                    match y.as_chunks_mut::<LANES>() {
                        ([whole], _) => out.store_slice(whole),
                        (_, part) => part.copy_from_slice(&<[f32; LANES]>::from(out)[..part.len()]),
                    }
                }
            },
        );
    }
}

/// Ranges of about the same length, longer ones first.
fn even_parts(len: usize, parts: usize) -> impl Iterator<Item = Range<usize>> {
    let (each, longer) = (len / parts.max(1), len % parts.max(1));
    (0..parts).scan(0, move |next, part| {
        let start = *next;
        *next += each + usize::from(part < longer);
        Some(start..*next)
    })
}

/// The activations of a row, padding included.
fn fours(x: &Quantized, row: usize) -> &[Four] {
    x.row(row).as_chunks().0
}
