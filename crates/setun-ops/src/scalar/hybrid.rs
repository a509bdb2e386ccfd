//! The operations of hybrid models: the delta net, its gates, and rotations.

use super::ScalarStep;
use crate::{
    batch_inputs::BatchInputs, hadamard::hadamard_row, host_cache::HostCache, op::Op,
    sigmoid_gate::sigmoid_gate_row,
};

impl ScalarStep {
    /// Runs an operation for which [`Op::is_hybrid`] holds; others are left alone.
    pub(super) fn run_hybrid_op(&mut self, op: &Op, cache: &mut HostCache, inputs: &BatchInputs) {
        match op {
            Op::SigmoidGate { x, gate, column } => {
                for row in 0..inputs.rows() {
                    let gates = self.row(*gate, row)[*column..][..self.width(*x)].to_vec();
                    sigmoid_gate_row(self.row_mut(*x, row), &gates);
                }
            }
            Op::DeltaNet { x, shape, weights, layer, out } => {
                self.delta_net(*x, *shape, weights, *layer, *out, (cache, inputs));
            }
            Op::DenseMatmul { x, weight, out, out_column } => {
                for row in 0..inputs.rows() {
                    let logits = self.logits(*weight, *x, row);
                    self.row_mut(*out, row)[*out_column..][..logits.len()].copy_from_slice(&logits);
                }
            }
            Op::Hadamard { x, signs, block, is_inverse } => {
                let signs = signs.map(|signs| self.vector(signs).to_vec());
                for row in 0..self.rows(*x, inputs) {
                    hadamard_row(self.row_mut(*x, row), signs.as_deref(), *block, *is_inverse);
                }
            }
            _ => {}
        }
    }
}
