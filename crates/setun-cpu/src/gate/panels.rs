//! `gate` for many rows, by panels: hardly an output is closed for all of them, so both matrices
//! are read whole.

use setun_ops::op::{Activation, BufferId, Linear};

use super::gate_row;
use crate::{
    split::Grid, step::Buffers, ternary_dot::TernaryDot, ternary_matmul::Residual,
    ternary_panel::PANEL_OUTPUTS, walk::Walk,
};

impl<D: TernaryDot> Walk<'_, D> {
    pub(super) fn gate_by_panels(
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
            let width = out.width;
            let out = Grid::new(&mut out.values[..rows * width], width)
                .tiles(self.rows_of_panels(rows, gate.matrix), PANEL_OUTPUTS);
            self.each(out, |scratch, _, mut tile| {
                let (panel, outputs, rows) = (&mut scratch.panel, tile.columns(), tile.rows());
                let first = outputs.start;
                // The output holds the gate until it is combined.
                gate.add_up(self.isa, panel, first, rows.clone(), (&up, first));
                for (index, row) in rows.clone().enumerate() {
                    let y = tile.row(index);
                    gate.store(self.isa, panel, index, outputs.clone(), row, &Residual::None, y);
                }
                let next = (&gate, first + self.panels_apart());
                up.add_up(self.isa, panel, first, rows.clone(), next);
                for (index, row) in rows.enumerate() {
                    let (mut g, mut u) = ([0.0; PANEL_OUTPUTS], [0.0; PANEL_OUTPUTS]);
                    let y = tile.row(index);
                    g[..y.len()].copy_from_slice(y);
                    self.record_open(activation, y);
                    let u_row = &mut u[..y.len()];
                    up.store(self.isa, panel, index, outputs.clone(), row, &Residual::None, u_row);
                    gate_row(self.isa.lanes(), activation, &g, &u, y);
                }
            });
        });
    }
}
