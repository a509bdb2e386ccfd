//! `delta_net`: a gated delta net over the recurrent state of each sequence.
//!
//! A row of the input has the columns `[q, k, v, z, b, a]`: queries and keys of `key_heads`, values and
//! `z` of `value_heads`, and two numbers for each value head. For each row of a sequence, in order:
//!
//! ```text
//! c        = silu(causal_conv(q, k, v))                           each channel by itself
//! q        = l2_norm(c's q) × (1 / sqrt(key_dim)),  k = l2_norm(c's k),  v = c's v
//! β        = sigmoid(b),  λ = exp(decay × softplus(a + dt_bias))  each value head
//! S, o     = delta_rule(S, q, k, v, λ, β)                         each value head
//! out      = (rms_norm(o) × gain) × silu(z)                       each value head
//! ```
//!
//! `S` is `[key_dim, value_dim]`, all zero before the first row. The recurrence is that of Yang et al., Gated Delta
//! Networks (2024); layout and epsilons are those of transformers' Qwen3.5.

pub use crate::delta_net_shape::{DeltaNetShape, HeadOrder};
use crate::{
    causal_conv::causal_conv,
    delta_rule::delta_rule,
    exp::exp,
    gate::gate_output,
    l2_norm::l2_norm,
    op::{Activation, Agreement},
    rms_norm::rms_norm_row,
};

/// See [`Agreement`].
pub const AGREEMENT: Agreement = Agreement::ExactOnCpu { gpu_ulp: 1024 };

/// The weights of a delta net but for its matrices.
#[derive(Clone, Copy, Debug)]
pub struct DeltaNet<'a> {
    /// Shape of the heads.
    pub shape: DeltaNetShape,
    /// Taps of the convolution, `[kernel, channels]`, the last those of the current row.
    pub conv: &'a [f32],
    /// Factors of the decay, `[value_heads]`, not positive.
    pub decay: &'a [f32],
    /// Added to `a`, `[value_heads]`.
    pub dt_bias: &'a [f32],
    /// Gain of the norm of a head's result, `[value_dim]`.
    pub gain: &'a [f32],
    /// Epsilon of this norm.
    pub eps: f32,
}

impl DeltaNet<'_> {
    /// Takes in one row. `window` are the `kernel` last rows of the input, oldest first, of which `z` is not
    /// read; rows before the first of a sequence are zeros. `states` are `[value_heads, key_dim, value_dim]`, those
    /// of a key head together. Returns `[value_heads, value_dim]` in the order of the weights.
    ///
    /// # Panics
    ///
    /// If a length is not as the shape says.
    #[must_use]
    pub fn step(&self, window: &[&[f32]], states: &mut [f32]) -> Vec<f32> {
        let DeltaNetShape { key_dim, value_dim, value_heads, .. } = self.shape;
        let channels: Vec<f32> =
            (0..self.shape.channels()).map(|c| self.channel(window, c)).collect();
        let (queries, rest) = channels.split_at(self.shape.key_width());
        let (keys, values) = rest.split_at(self.shape.key_width());
        let row = window[window.len() - 1];
        let numbers = self.shape.channels() + self.shape.value_width();
        let mut out = vec![0.0; self.shape.value_width()];
        for key_head in 0..self.shape.key_heads {
            let mut q = queries[key_head * key_dim..][..key_dim].to_vec();
            let mut k = keys[key_head * key_dim..][..key_dim].to_vec();
            l2_norm(&mut q, query_scale(key_dim));
            l2_norm(&mut k, 1.0);
            for index in 0..self.shape.group() {
                let head = self.shape.value_head(key_head, index);
                let (b, a) = (row[numbers + head], row[numbers + value_heads + head]);
                let (decay, beta) = (self.decay(head, a), sigmoid(b));
                let state = key_head * self.shape.group() + index;
                let state = &mut states[state * key_dim * value_dim..][..key_dim * value_dim];
                let v = &values[head * value_dim..][..value_dim];
                delta_rule(
                    state,
                    (&q, &k, v),
                    (decay, beta),
                    &mut out[head * value_dim..][..value_dim],
                );
            }
        }
        out
    }

    /// The result of a head, `[value_dim]`, from what the recurrence gave and its `z`.
    #[must_use]
    pub fn output(&self, o: &[f32], z: &[f32]) -> Vec<f32> {
        let mut normed = vec![0.0; o.len()];
        rms_norm_row(o, self.gain, self.eps, &mut normed);
        normed.iter().zip(z).map(|(&x, &z)| gate_output(Activation::Silu, z, x)).collect()
    }

    /// How much of a head's state a row keeps, between 0 and 1.
    #[must_use]
    pub fn decay(&self, head: usize, a: f32) -> f32 {
        exp(self.decay[head] * softplus(a + self.dt_bias[head]))
    }

    fn channel(&self, window: &[&[f32]], channel: usize) -> f32 {
        let taps = self.conv.chunks_exact(self.shape.channels()).map(|taps| taps[channel]);
        causal_conv(window.iter().map(|row| row[channel]), taps)
    }
}

/// By what queries are multiplied after their norm: `1 / sqrt(key_dim)`.
#[must_use]
pub fn query_scale(key_dim: usize) -> f32 {
    crate::attention::inverse_sqrt(key_dim)
}

/// `1 / (1 + e^−x)`
#[must_use]
pub fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

/// `ln(1 + e^x)`, and `x` above 20, as torch has it; in `f64`, rounded.
#[must_use]
#[expect(clippy::cast_possible_truncation, reason = "rounds to the nearest f32")]
pub fn softplus(x: f32) -> f32 {
    if x > 20.0 { x } else { libm::log1p(libm::exp(f64::from(x))) as f32 }
}

/// A head's factor of the decay from its stored logarithm, `−e^x`; in `f64`, rounded.
#[must_use]
#[expect(clippy::cast_possible_truncation, reason = "rounds to the nearest f32")]
pub fn decay_factor(x: f32) -> f32 {
    -(libm::exp(f64::from(x)) as f32)
}
