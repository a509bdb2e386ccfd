//! `sigmoid_gate`: what attention gives, times the sigmoid of its gate, in place.
//!
//! `y[i] = x[i] × (1 / (1 + exp(−g[i])))`

use crate::{delta_net::sigmoid, op::Agreement};

/// See [`Agreement`].
pub const AGREEMENT: Agreement = Agreement::ExactOnCpu { gpu_ulp: 8 };

/// Gates a row in place.
///
/// # Panics
///
/// If there are not as many gates.
pub fn sigmoid_gate_row(x: &mut [f32], gates: &[f32]) {
    assert_eq!(x.len(), gates.len(), "a gate a column");
    x.iter_mut().zip(gates).for_each(|(x, &gate)| *x *= sigmoid(gate));
}
