//! `gate` over lanes; defined in [`setun_ops::gate`].

use std::ops::Range;

use fearless_simd::{f32x16, prelude::*, u32x16};
use setun_ops::op::{Activation, BufferId, Linear};

use crate::{
    lanes::{LANES, bits_of, exp, select},
    split::Grid,
    step::Buffers,
    ternary_dot::{TILE_ROWS, TernaryDot},
    ternary_matmul::LinearView,
    walk::Walk,
};

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
        buffers.write_floats(out, |buffers, out| {
            let (gate, up) = (self.linear(buffers, gate), self.linear(buffers, up));
            let run = self.run_of_outputs(gate.matrix).next_multiple_of(LANES);
            let width = out.width;
            let out = Grid::new(&mut out.values[..rows * width], width).tiles(rows.max(1), run);
            self.each(out, |_, _, mut tile| {
                let columns = tile.columns();
                for first_row in (0..rows).step_by(TILE_ROWS) {
                    let tile_rows = first_row..rows.min(first_row + TILE_ROWS);
                    for first in columns.clone().step_by(LANES) {
                        let run = first..columns.end.min(first + LANES);
                        let g = self.run(&gate, run.clone(), tile_rows.clone());
                        let u = self.run(&up, run.clone(), tile_rows.clone());
                        for (row, (g, u)) in tile_rows.clone().zip(g.iter().zip(&u)) {
                            let h = gate_outputs(self.isa.lanes(), activation, g, u);
                            let y = &mut tile.row(row)[run.start - columns.start..][..run.len()];
                            y.copy_from_slice(&h[..run.len()]);
                        }
                    }
                }
            });
        });
    }

    /// Up to 16 outputs of up to four rows.
    fn run(
        &self,
        linear: &LinearView<'_>,
        outputs: Range<usize>,
        rows: Range<usize>,
    ) -> [[f32; LANES]; TILE_ROWS] {
        let mut y = [[0.0; LANES]; TILE_ROWS];
        linear.outputs(self.isa, outputs.clone(), rows.clone(), |row, run, products| {
            y[row - rows.start][run.start - outputs.start..][..run.len()].copy_from_slice(products);
        });
        y
    }
}

/// Twin of [`setun_ops::gate::gate_output`] over sixteen outputs.
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
