//! The shapes that are known by name.

mod hybrid;

use clap::ValueEnum;
use setun::{
    checkpoint::{
        Dtype,
        config::{
            ACTIVATION_GROUP, LinearClass, Mixer, ModelConfig, Quantization, QuantizationMode,
            RopeConfig, RopeScaling,
        },
    },
    ops::op::Activation,
};

pub(crate) use hybrid::Hybrid;

/// Sizes of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) name: &'static str,
    pub(crate) kind: ShapeKind,
    pub(crate) hidden: usize,
    pub(crate) ffn: usize,
    pub(crate) layers: usize,
    pub(crate) heads: usize,
    pub(crate) kv_heads: usize,
    pub(crate) vocab: usize,
    pub(crate) context: usize,
}

/// The family of a shape: how its weights are scaled, and its kind of head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShapeKind {
    /// relu² with sub-norms, one scale a matrix, and a tied head of floats.
    BitNet,
    /// A Qwen3 with ternary matrices, embedding and head, scaled by groups of columns.
    Bonsai { tied_head: bool },
    /// The text model of Qwen3.5 and later: most layers are gated delta nets. All matrices are ternary,
    /// scaled by groups of columns.
    Hybrid(Hybrid),
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
    /// Ternary Bonsai 1.7B: scales by groups of 128 columns, ternary embedding and head.
    #[value(name = "bonsai-1.7b")]
    Bonsai1_7b,
    /// Ternary Bonsai 4B.
    #[value(name = "bonsai-4b")]
    Bonsai4b,
    /// Ternary Bonsai 8B, whose head is not its embedding.
    #[value(name = "bonsai-8b")]
    Bonsai8b,
    /// Ternary Bonsai 27B: gated delta nets, and gated attention in every fourth layer.
    #[value(name = "bonsai-27b")]
    Bonsai27b,
    /// Ternary Bonsai 2 27B: the same with rotated inputs.
    #[value(name = "bonsai-2-27b")]
    Bonsai2_27b,
    /// The kinds of layers of Bonsai 27B: hidden 1024, 8 layers.
    #[value(name = "bonsai-small-hybrid")]
    BonsaiSmallHybrid,
}

impl ShapeName {
    /// The sizes behind the name.
    pub(crate) fn shape(self) -> Shape {
        let large = |name, hidden, ffn, layers| Shape {
            name,
            kind: ShapeKind::BitNet,
            hidden,
            ffn,
            layers,
            heads: layers,
            kv_heads: layers,
            vocab: 32_000,
            context: 4096,
        };
        let bonsai = |name, hidden, ffn, layers, heads| Shape {
            name,
            kind: ShapeKind::Bonsai { tied_head: true },
            hidden,
            ffn,
            layers,
            heads,
            kv_heads: 8,
            vocab: 151_669,
            context: 32_768,
        };
        match self {
            Self::B2b4t => Shape {
                name: "2b4t",
                kind: ShapeKind::BitNet,
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
                kind: ShapeKind::BitNet,
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
            Self::Bonsai1_7b => bonsai("bonsai-1.7b", 2048, 6144, 28, 16),
            Self::Bonsai4b => bonsai("bonsai-4b", 2560, 9728, 36, 32),
            Self::Bonsai8b => Shape {
                kind: ShapeKind::Bonsai { tied_head: false },
                context: 65_536,
                ..bonsai("bonsai-8b", 4096, 12_288, 36, 32)
            },
            Self::Bonsai27b => hybrid::large("bonsai-27b", false),
            Self::Bonsai2_27b => hybrid::large("bonsai-2-27b", true),
            Self::BonsaiSmallHybrid => hybrid::SMALL,
        }
    }
}

impl Shape {
    /// The configuration. It names no end token: every generation is as long as it is asked to be.
    pub(crate) fn config(&self) -> ModelConfig {
        let bitnet = ModelConfig {
            architecture: "BitNetForCausalLM".into(),
            vocab_size: self.vocab,
            hidden_size: self.hidden,
            ffn_size: self.ffn,
            layers: vec![Mixer::Attention; self.layers],
            heads: self.heads,
            kv_heads: self.kv_heads,
            head_dim: self.head_dim(),
            context_length: self.context,
            activation: Activation::ReluSquared,
            norm_eps: 1e-5,
            rope: RopeConfig {
                theta: 500_000.0,
                dimensions: self.head_dim(),
                scaling: RopeScaling::Default,
            },
            sub_norms: true,
            head_norms: false,
            attention_gate: false,
            unit_norms: false,
            tied_head: true,
            attention_bias: false,
            mlp_bias: false,
            quantization: Quantization {
                linear_class: LinearClass::AutoBitLinear,
                mode: QuantizationMode::Offline,
                linear_norm_eps: None,
                shards: 1,
                activation_group: None,
            },
            hadamard: None,
            bos_token: None,
            eos_tokens: vec![],
        };
        let tied_head = match self.kind {
            ShapeKind::BitNet => return bitnet,
            ShapeKind::Bonsai { tied_head } => tied_head,
            ShapeKind::Hybrid(_) => false,
        };
        let bonsai = ModelConfig {
            architecture: "Qwen3ForCausalLM".into(),
            activation: Activation::Silu,
            norm_eps: 1e-6,
            rope: RopeConfig { theta: 1_000_000.0, ..bitnet.rope },
            sub_norms: false,
            head_norms: true,
            tied_head,
            quantization: Quantization {
                mode: QuantizationMode::Affine { group: GROUP },
                activation_group: Some(ACTIVATION_GROUP),
                ..bitnet.quantization
            },
            ..bitnet
        };
        match self.kind {
            ShapeKind::Hybrid(hybrid) => hybrid.config(bonsai),
            _ => bonsai,
        }
    }

    /// Width of a head.
    pub(crate) fn head_dim(&self) -> usize {
        match self.kind {
            ShapeKind::BitNet => self.hidden / self.heads,
            ShapeKind::Bonsai { .. } => 128,
            ShapeKind::Hybrid(Hybrid { head_dim, .. }) => head_dim,
        }
    }

    /// Type of all but codes.
    pub(crate) fn dtype(&self) -> Dtype {
        match self.kind {
            ShapeKind::BitNet => Dtype::Bf16,
            ShapeKind::Bonsai { .. } | ShapeKind::Hybrid(_) => Dtype::F16,
        }
    }

    /// Whether gates can be closed by design: those of relu² are, those of `SiLU` never quite.
    pub(crate) fn has_closed_gates(&self) -> bool {
        self.kind == ShapeKind::BitNet
    }
}

/// Columns that share a scale.
const GROUP: usize = 128;

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

    /// The catalog's numbers of parameters, which are those of the published configurations.
    #[test]
    fn bonsai_shapes_have_their_published_sizes() {
        for (name, shape) in [
            ("ternary-bonsai-1.7b", ShapeName::Bonsai1_7b),
            ("ternary-bonsai-4b", ShapeName::Bonsai4b),
            ("ternary-bonsai-8b", ShapeName::Bonsai8b),
        ] {
            let config = shape.shape().config();
            let (hidden, head) = (config.hidden_size, config.head_dim);
            let attention = 2 * hidden * (config.query_width() + config.kv_width());
            let norms = 2 * hidden + 2 * head;
            let layer = attention + 3 * hidden * config.ffn_size + norms;
            let tables = if config.tied_head { 1 } else { 2 };
            let all = config.layers.len() * layer + hidden + tables * config.vocab_size * hidden;
            let entry = setun::hub::catalog::find(name).expect("an entry");
            assert_eq!(all as u64, entry.parameters, "{name}");
            assert_eq!(Some(config.context_length as u64), entry.context_length, "{name}");
        }
    }
}
