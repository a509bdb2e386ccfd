//! The shapes that are known by name.

use clap::ValueEnum;
use setun::{
    checkpoint::config::{
        LinearClass, ModelConfig, Quantization, QuantizationMode, RopeConfig, RopeScaling,
    },
    ops::op::Activation,
};

/// Sizes of a `BitNet` model, relu² with sub-norms and a tied head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) name: &'static str,
    pub(crate) hidden: usize,
    pub(crate) ffn: usize,
    pub(crate) layers: usize,
    pub(crate) heads: usize,
    pub(crate) kv_heads: usize,
    pub(crate) vocab: usize,
    pub(crate) context: usize,
}

/// Names of shapes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ShapeName {
    /// Microsoft's bitnet-b1.58-2B-4T.
    #[value(name = "2b4t")]
    B2b4t,
    /// Hidden 1024, 12 layers.
    Small,
    /// Hidden 4096, 32 layers.
    #[value(name = "7b")]
    B7,
    /// Hidden 5120, 40 layers.
    #[value(name = "13b")]
    B13,
    /// Hidden 6656, 60 layers.
    #[value(name = "30b")]
    B30,
    /// Hidden 8192, 80 layers, eight heads of keys and values.
    #[value(name = "70b")]
    B70,
}

impl ShapeName {
    /// The sizes behind the name.
    pub(crate) fn shape(self) -> Shape {
        let large = |name, hidden, ffn, layers| Shape {
            name,
            hidden,
            ffn,
            layers,
            heads: layers,
            kv_heads: layers,
            vocab: 32_000,
            context: 4096,
        };
        match self {
            Self::B2b4t => Shape {
                name: "2b4t",
                hidden: 2560,
                ffn: 6912,
                layers: 30,
                heads: 20,
                kv_heads: 5,
                vocab: 128_256,
                context: 4096,
            },
            Self::Small => Shape {
                name: "small",
                hidden: 1024,
                ffn: 2816,
                layers: 12,
                heads: 16,
                kv_heads: 4,
                vocab: 32_000,
                context: 4096,
            },
            Self::B7 => large("7b", 4096, 11_008, 32),
            Self::B13 => large("13b", 5120, 13_824, 40),
            Self::B30 => Shape { heads: 52, kv_heads: 52, ..large("30b", 6656, 17_920, 60) },
            Self::B70 => Shape { heads: 64, kv_heads: 8, ..large("70b", 8192, 28_672, 80) },
        }
    }
}

impl Shape {
    /// The configuration. It names no end token: every generation is as long as it is asked to be.
    pub(crate) fn config(&self) -> ModelConfig {
        ModelConfig {
            architecture: "BitNetForCausalLM".into(),
            vocab_size: self.vocab,
            hidden_size: self.hidden,
            ffn_size: self.ffn,
            layers: self.layers,
            heads: self.heads,
            kv_heads: self.kv_heads,
            head_dim: self.head_dim(),
            context_length: self.context,
            activation: Activation::ReluSquared,
            norm_eps: 1e-5,
            rope: RopeConfig { theta: 500_000.0, scaling: RopeScaling::Default },
            sub_norms: true,
            head_norms: false,
            tied_head: true,
            attention_bias: false,
            mlp_bias: false,
            quantization: Quantization {
                linear_class: LinearClass::AutoBitLinear,
                mode: QuantizationMode::Offline,
                linear_norm_eps: None,
                shards: 1,
            },
            bos_token: None,
            eos_tokens: vec![],
        }
    }

    /// Width of a head.
    pub(crate) fn head_dim(&self) -> usize {
        self.hidden / self.heads
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The parameter count that is published for bitnet-b1.58-2B-4T's ternary matrices.
    #[test]
    fn the_2b4t_shape_has_its_published_size() {
        let shape = ShapeName::B2b4t.shape();
        let kv = shape.kv_heads * shape.head_dim();
        let attention = shape.hidden * (2 * shape.hidden + 2 * kv);
        let layer = attention + 3 * shape.hidden * shape.ffn;
        assert_eq!(shape.layers * layer, 2_084_044_800);
        assert_eq!(shape.vocab * shape.hidden, 328_335_360);
    }
}
