//! `gate`: the gated activation of a feed-forward layer.
//!
//! ```text
//! relu²:  h = (g × g) × u, and +0 where g ≤ 0, whatever u is
//! silu:   h = (g / (1 + exp(−g))) × u
//! ```
//!
//! `g` and `u` are outputs of [`ternary_matmul`](crate::ternary_matmul). One operation holds both matrices, so
//! that a backend may compute `g` first and skip the rows of `u` that cannot matter. The
//! result stays `f32`: relu² exceeds what `f16` can hold.

use crate::{
    exp::exp,
    op::{Activation, Agreement},
};

/// See [`Agreement`].
pub const AGREEMENT: Agreement = Agreement::ExactOnCpu { gpu_ulp: 8 };

/// One element of the gated activation. A NaN in `g` stays one.
#[must_use]
pub fn gate_output(activation: Activation, g: f32, u: f32) -> f32 {
    match activation {
        Activation::ReluSquared if g <= 0.0 => 0.0,
        Activation::ReluSquared => (g * g) * u,
        Activation::Silu => g / (1.0 + exp(-g)) * u,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_gate_hides_everything() {
        for u in [f32::NAN, f32::INFINITY, -3.0] {
            for g in [0.0, -0.0, -1.0, f32::NEG_INFINITY] {
                assert_eq!(gate_output(Activation::ReluSquared, g, u).to_bits(), 0);
            }
        }
        assert!(gate_output(Activation::ReluSquared, f32::NAN, 1.0).is_nan());
    }
}
