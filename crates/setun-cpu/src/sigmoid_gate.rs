//! `sigmoid_gate` over lanes; defined in [`setun_ops::sigmoid_gate`].

use fearless_simd::{f32x16, prelude::*};
use setun_ops::{delta_net::sigmoid, op::BufferId};

use crate::{
    lanes::{LANES, exp},
    split::Grid,
    step::Buffers,
    ternary_dot::TernaryDot,
    walk::Walk,
};

impl<D: TernaryDot> Walk<'_, D> {
    pub(crate) fn sigmoid_gate(
        &self,
        buffers: &mut Buffers,
        x: BufferId,
        gate: BufferId,
        column: usize,
    ) {
        let rows = self.inputs.rows();
        buffers.write_floats(x, |buffers, x| {
            let (gates, width) = (buffers.floats(gate), x.width);
            let x = Grid::new(&mut x.values[..rows * width], width).tiles(1, width.max(1));
            self.each(x, |_, row, mut x| {
                gate_row(self.isa.lanes(), x.row(0), &gates.row(row)[column..][..width]);
            });
        });
    }
}

/// Lane version of [`setun_ops::sigmoid_gate::sigmoid_gate_row`].
fn gate_row<S: Simd>(simd: S, x: &mut [f32], gates: &[f32]) {
    simd.vectorize(
        #[inline(always)]
        || {
            let (chunks, rest) = x.as_chunks_mut::<LANES>();
            let (gates, rest_gates) = gates.as_chunks::<LANES>();
            let one = f32x16::splat(simd, 1.0);
            for (x, gate) in chunks.iter_mut().zip(gates) {
                let sigmoid = one / (exp(simd, -f32x16::from_slice(simd, gate)) + 1.0);
                (f32x16::from_slice(simd, x) * sigmoid).store_slice(x);
            }
            rest.iter_mut().zip(rest_gates).for_each(|(x, &gate)| *x *= sigmoid(gate));
        },
    );
}
