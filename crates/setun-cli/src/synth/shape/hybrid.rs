//! Shapes of the hybrid family, of gated delta nets and gated attention.

use std::collections::{BTreeMap, BTreeSet};

use setun::{
    checkpoint::config::{Hadamard, Mixer, ModelConfig, RopeConfig},
    forward::families::QWEN3_5,
    ops::delta_net::{DeltaNetShape, HeadOrder},
};

use super::{Shape, ShapeKind};
use crate::synth::noise;

/// Sizes that only hybrid models have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hybrid {
    /// Width of a head of attention.
    pub(crate) head_dim: usize,
    /// Heads of queries and keys of a delta net.
    pub(crate) key_heads: usize,
    /// Heads of values of a delta net.
    pub(crate) value_heads: usize,
    /// Columns of a block of the Hadamard rotation; none where inputs are not rotated.
    pub(crate) rotation: Option<usize>,
}

/// Width of a head of a delta net.
const NET_HEAD: usize = 128;

/// Every layer of this number attends.
const INTERVAL: usize = 4;

/// Key of the signs of rotated inputs.
const SIGNS: u64 = 0x5165_6e73;

/// The 27B models.
pub(super) fn large(name: &'static str, is_rotated: bool) -> Shape {
    let rotation = is_rotated.then_some(1024);
    Shape {
        name,
        kind: ShapeKind::Hybrid(Hybrid { head_dim: 256, key_heads: 16, value_heads: 48, rotation }),
        hidden: 5120,
        ffn: 17_408,
        layers: 64,
        heads: 24,
        kv_heads: 4,
        vocab: 248_320,
        context: 262_144,
    }
}

/// A model for tests and quick measurements.
pub(super) const SMALL: Shape = Shape {
    name: "bonsai-small-hybrid",
    kind: ShapeKind::Hybrid(Hybrid {
        head_dim: 256,
        key_heads: 4,
        value_heads: 12,
        rotation: None,
    }),
    hidden: 1024,
    ffn: 3072,
    layers: 8,
    heads: 8,
    kv_heads: 2,
    vocab: 32_000,
    context: 4096,
};

impl Hybrid {
    /// The configuration, given that of a Bonsai of the same sizes. Norms are stored as MLX has them.
    pub(super) fn config(self, bonsai: ModelConfig) -> ModelConfig {
        let net = Mixer::DeltaNet(self.net());
        let mixer = |layer: usize| {
            if (layer + 1).is_multiple_of(INTERVAL) { Mixer::Attention } else { net }
        };
        let layers: Vec<_> = (0..bonsai.layers.len()).map(mixer).collect();
        let hadamard = self.rotation.map(|block| self.hadamard(block, &layers, &bonsai));
        ModelConfig {
            architecture: QWEN3_5.architectures[0].to_owned(),
            layers,
            rope: RopeConfig { theta: 10_000_000.0, dimensions: self.head_dim / 4, ..bonsai.rope },
            attention_gate: true,
            hadamard,
            ..bonsai
        }
    }

    fn net(self) -> DeltaNetShape {
        DeltaNetShape {
            key_heads: self.key_heads,
            value_heads: self.value_heads,
            key_dim: NET_HEAD,
            value_dim: NET_HEAD,
            kernel: 4,
            order: HeadOrder::Grouped,
            output_order: HeadOrder::Grouped,
        }
    }

    /// A rotation of all inputs but those of the matrices that give `a` and `b`, with random signs.
    fn hadamard(self, block: usize, layers: &[Mixer], sizes: &ModelConfig) -> Hadamard {
        let (family, mut names) = (QWEN3_5, BTreeSet::new());
        for (layer, mixer) in layers.iter().enumerate() {
            let mixer: &[&str] = match mixer {
                Mixer::Attention => &[family.query, family.key, family.value, family.output],
                Mixer::DeltaNet(_) => &[family.net_input, family.net_z, family.net_output],
            };
            let patterns = [mixer, &[family.gate, family.up, family.down]].concat();
            let name = |pattern: &str| pattern.replace("{}", &layer.to_string());
            names.extend(patterns.into_iter().map(name));
        }
        names.extend(family.head.strip_suffix(family.weight).map(str::to_owned));
        let widths =
            [sizes.hidden_size, sizes.ffn_size, sizes.query_width(), self.net().value_width()];
        let sign = |key, column: usize| if noise(key, column as u64) & 1 == 0 { 1.0 } else { -1.0 };
        let signs = |width: usize| {
            let key = noise(SIGNS, width as u64);
            (width, (0..width).map(|column| sign(key, column)).collect())
        };
        let signs: BTreeMap<_, _> = widths.into_iter().map(signs).collect();
        Hadamard { block, signs, layers: names, embedding: true }
    }
}
