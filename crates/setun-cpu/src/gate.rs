//! `gate` over lanes; defined in [`setun_ops::gate`].

mod panels;

use std::ops::Range;

use fearless_simd::{f32x16, prelude::*, u32x16};
use setun_ops::{
    op::{Activation, BufferId, Linear},
    ternary::row_bytes,
};

use crate::{
    lanes::{LANES, bits_of, exp, select},
    split::Grid,
    step::Buffers,
    ternary_dot::{TILE_ROWS, TernaryDot},
    ternary_matmul::{LinearView, RUN, Run},
    walk::Walk,
};

/// Where more than this part of a run's gates is open, all of `up` is read: to leave out so few
/// rows saves no time.
const MAX_OPEN: (usize, usize) = (4, 5);

impl<D: TernaryDot> Walk<'_, D> {
    pub(crate) fn gate(
        &self,
        buffers: &mut Buffers,
        gate: &Linear,
        up: &Linear,
        activation: Activation,
        out: BufferId,
    ) {
        let rows = self.rows(out);
        if self.has_panels(rows, [gate, up]) {
            return self.gate_by_panels(buffers, gate, up, activation, out);
        }
        buffers.write_floats(out, |buffers, out| {
            let (gate, up) = (self.linear(buffers, gate), self.linear(buffers, up));
            let run = self.run_of_outputs(gate.matrix).next_multiple_of(LANES).min(RUN);
            let width = out.width;
            let out = Grid::new(&mut out.values[..rows * width], width).tiles(rows.max(1), run);
            self.each(out, |scratch, _, mut tile| {
                let groups = &mut scratch.groups;
                let columns = tile.columns();
                let mut opened = [false; RUN];
                for first_row in (0..rows).step_by(TILE_ROWS) {
                    let tile_rows = first_row..rows.min(first_row + TILE_ROWS);
                    let g = gate.run(self.isa, groups, columns.clone(), tile_rows.clone());
                    let u = if activation == Activation::Silu || up.has_groups() {
                        opened.fill(true);
                        up.run(self.isa, groups, columns.clone(), tile_rows.clone())
                    } else {
                        let (columns, tile_rows) = (columns.clone(), tile_rows.clone());
                        self.open(&up, &g, columns, tile_rows, &mut opened)
                    };
                    for (row, (g, u)) in tile_rows.zip(g.iter().zip(&u)) {
                        let y = tile.row(row);
                        self.record_open(activation, &g[..y.len()]);
                        gate_row(self.isa.lanes(), activation, g, u, y);
                    }
                }
                let closed = opened[..columns.len()].iter().filter(|&&opened| !opened).count();
                self.spare(closed * row_bytes(up.matrix.columns()));
            });
        });
    }

    /// Records how many gates are open: what is not positive closes one.
    fn record_open(&self, activation: Activation, gates: &[f32]) {
        if activation == Activation::ReluSquared {
            self.record_nonzero(|| gates.len() - gates.iter().filter(|&&g| g <= 0.0).count());
        }
    }

    /// Of the outputs of `up` those alone whose gate is open in one of the rows: where all are
    /// closed, the result is zero whatever `up` is, so that its row of weights is not read. Marks
    /// those that are read.
    fn open(
        &self,
        up: &LinearView<'_>,
        gates: &Run,
        outputs: Range<usize>,
        rows: Range<usize>,
        opened: &mut [bool; RUN],
    ) -> Run {
        let mut open = [0; RUN];
        let mut count = 0;
        for index in 0..outputs.len() {
            open[count] = index;
            let closed = gates[..rows.len()].iter().all(|row| row[index] <= 0.0);
            count += usize::from(!closed);
            opened[index] |= !closed;
        }
        if count * MAX_OPEN.1 > outputs.len() * MAX_OPEN.0 {
            opened.fill(true);
            return up.whole(self.isa, outputs, rows);
        }
        up.picked(self.isa, outputs.start, &open[..count], rows)
    }
}

/// Lane version of [`setun_ops::gate::gate_output`] over the outputs of a row. `g` and `u` are whole
/// vectors, at least as long as `y`.
fn gate_row<S: Simd>(simd: S, activation: Activation, g: &[f32], u: &[f32], y: &mut [f32]) {
    let chunks = g.as_chunks().0.iter().zip(u.as_chunks().0);
    for ((g, u), y) in chunks.zip(y.chunks_mut(LANES)) {
        y.copy_from_slice(&gate_outputs(simd, activation, g, u)[..y.len()]);
    }
}

/// Sixteen of them.
fn gate_outputs<S: Simd>(
    simd: S,
    activation: Activation,
    g: &[f32; LANES],
    u: &[f32; LANES],
) -> [f32; LANES] {
    simd.vectorize(
        #[inline(always)]
        || {
            let (g, u) = (f32x16::from_slice(simd, g), f32x16::from_slice(simd, u));
            match activation {
                Activation::ReluSquared => {
                    let h: u32x16<S> = ((g * g) * u).bitcast();
                    let closed = bits_of(g.simd_le(0.0));
                    let h: f32x16<S> = select(closed, u32x16::splat(simd, 0), h).bitcast();
                    h.into()
                }
                Activation::Silu => (g / (exp(simd, -g) + 1.0) * u).into(),
            }
        },
    )
}
