//! Which weights a model has, numbered, and where each is used.

use setun_ops::{
    WeightId, WeightSpec,
    op::{Bias, HeadShape, Norm},
};

/// The numbered weights of a model. Their order is that of their use.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Kind and shape of each weight; [`WeightId`]`(i)` is element `i`.
    pub specs: Vec<WeightSpec>,
    /// Embedding table.
    pub embedding: WeightId,
    /// Cosines and sines.
    pub rope: WeightId,
    /// The layers.
    pub layers: Vec<LayerLayout>,
    /// Norm before the head.
    pub final_norm: Norm,
    /// Head; the embedding itself where it is tied.
    pub head: WeightId,
    /// Shape of the attention heads.
    pub heads: HeadShape,
    /// Columns of activations that share a scale; none where all of a row do.
    pub activation_group: Option<usize>,
}

impl Layout {
    /// Number of parameters. A tied head counts once.
    #[must_use]
    pub fn parameters(&self) -> u64 {
        let elements = |spec: &WeightSpec| match *spec {
            WeightSpec::Ternary { rows, columns, .. } | WeightSpec::Dense { rows, columns } => {
                rows * columns
            }
            WeightSpec::Vector { len } => len,
            WeightSpec::Rope { .. } => 0, // computed, not stored
        };
        self.specs.iter().map(|spec| elements(spec) as u64).sum()
    }
}

/// The weights of one layer.
#[derive(Clone, Debug)]
pub struct LayerLayout {
    /// Norm before attention.
    pub input_norm: Norm,
    /// Queries, keys and values: one stacked matrix, or three where each has its own norm.
    pub qkv: Vec<LinearLayout>,
    /// Norms of the heads of queries and keys, before these are rotated.
    pub head_norms: Option<HeadNorms>,
    /// Norm before `output`.
    pub attention_sub_norm: Option<Norm>,
    /// Output of attention.
    pub output: LinearLayout,
    /// Norm before the feed-forward part.
    pub post_attention_norm: Norm,
    /// Gate.
    pub gate: LinearLayout,
    /// Up.
    pub up: LinearLayout,
    /// Norm before `down`.
    pub ffn_sub_norm: Option<Norm>,
    /// Down.
    pub down: LinearLayout,
}

/// Norms of heads: a gain `[head_dim]` each.
#[derive(Clone, Copy, Debug)]
pub struct HeadNorms {
    /// Of the queries.
    pub query: Norm,
    /// Of the keys.
    pub key: Norm,
}

/// A linear layer.
#[derive(Clone, Debug)]
pub struct LinearLayout {
    /// Names in the checkpoint: several where matrices are stacked.
    pub names: Vec<String>,
    /// Its own norm, just before its input is quantized.
    pub norm: Option<Norm>,
    /// Ternary matrix.
    pub weight: WeightId,
    /// Bias.
    pub bias: Option<Bias>,
    /// Outputs, stacked ones together.
    pub outputs: usize,
}
