//! Tensors of layers with a gated delta net.

use setun::{
    checkpoint::Dtype, checkpoint::config::QuantizationMode, ops::delta_net::DeltaNetShape,
};

use super::{ADDED, Anchors, Content, List, deviation};
use crate::synth::content::NORMAL_DEVIATION;

/// Logarithms of the factors 1 to 16 of a decay.
const LOG_FACTORS: (f32, f32) = (0.0, 2.77);

/// Biases of which the softplus is between 0.001 and 0.1.
const TIME_STEPS: (f32, f32) = (-6.9, -2.25);

impl List<'_> {
    pub(super) fn delta_net(&mut self, layer: usize, shape: DeltaNetShape) {
        let (hidden, family) = (self.config.hidden_size, self.family);
        let (channels, kernel, heads) = (shape.channels(), shape.kernel, shape.value_heads);
        let name = |pattern: &str| pattern.replace("{}", &layer.to_string());
        let matrices = [(family.net_input, channels), (family.net_z, shape.value_width())];
        for (part, rows) in matrices {
            self.linear(&name(part), (rows, hidden), false, Anchors::Ignored, 1.0);
        }
        for part in [family.net_b, family.net_a] {
            self.gates(&name(part), (heads, hidden));
        }
        let conv = if self.is_turned() { [channels, kernel, 1] } else { [channels, 1, kernel] };
        // Four taps of half the deviation each leave the input's.
        let taps = Content::Master { step: 0.5 / NORMAL_DEVIATION };
        self.push(&name(family.net_conv), Dtype::Bf16, &conv, taps);
        let numbers = [(family.net_log_decay, LOG_FACTORS), (family.net_dt_bias, TIME_STEPS)];
        for (part, (low, high)) in numbers {
            self.push(&name(part), Dtype::F32, &[heads], Content::Uniform { low, high });
        }
        let ones = Content::Constant { value: 1.0, anchors: 1.0 };
        self.push(&name(family.net_norm), self.dtype, &[shape.value_dim], ones);
        let width = shape.value_width();
        self.linear(&name(family.net_output), (hidden, width), false, Anchors::Ignored, ADDED);
    }

    /// One of the matrices that give `b` and `a`: floats where the other inputs are rotated.
    fn gates(&mut self, name: &str, (rows, columns): (usize, usize)) {
        if self.config.hadamard.is_none() {
            self.linear(name, (rows, columns), false, Anchors::Ignored, 1.0);
            return;
        }
        let step = deviation(columns).recip() / NORMAL_DEVIATION;
        let name = format!("{name}{}", self.family.weight);
        self.push(&name, Dtype::Bf16, &[rows, columns], Content::Master { step });
    }

    /// The signs of the inputs of a rotated matrix or table, as packs of MLX have them.
    pub(super) fn signs(&mut self, name: &str, columns: usize) {
        let config = self.config;
        let Some(hadamard) = &config.hadamard else { return };
        let table = self.family.embedding.strip_suffix(self.family.weight);
        let is_rotated =
            hadamard.layers.contains(name) || hadamard.embedding && table == Some(name);
        if let Some(signs) = hadamard.signs.get(&columns).filter(|_| is_rotated && self.has_signs) {
            let content = Content::Signs(signs.as_slice().into());
            self.push(&format!("{name}.signs"), Dtype::F32, &[columns], content);
        }
    }

    /// Whether convolutions have MLX's shape, and norms the 1 that is added to each gain.
    fn is_turned(&self) -> bool {
        matches!(self.config.quantization.mode, QuantizationMode::Affine { .. })
    }

    /// Whether norms are stored without the 1 that is added to each gain.
    pub(super) fn norms_lack_one(&self) -> bool {
        self.config.unit_norms && !self.is_turned()
    }
}
