//! Which weights a model has, numbered, and where each is used.

use setun_ops::{
    WeightId, WeightSpec,
    delta_net::DeltaNetShape,
    op::{Bias, DeltaNetWeights, HeadShape, Norm},
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
    /// Whether the queries, keys and values of a row are followed by a gate for each query.
    pub attention_gate: bool,
    /// The rotation of rows of the embedding, which is turned back.
    pub embedding_rotation: Option<Rotation>,
    /// The rotation of the head's input.
    pub head_rotation: Option<Rotation>,
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
    /// Norm before the mixer.
    pub input_norm: Norm,
    /// How it mixes positions.
    pub mixer: MixerLayout,
    /// Output of the mixer.
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

impl LayerLayout {
    /// All its linear layers, in the order of their use.
    pub fn linears(&self) -> impl Iterator<Item = &LinearLayout> {
        self.mixer.inputs().iter().chain([&self.output, &self.gate, &self.up, &self.down])
    }
}

/// The weights of a layer that mix positions.
#[derive(Clone, Debug)]
pub enum MixerLayout {
    /// Attention.
    Attention(AttentionLayout),
    /// A gated delta net.
    DeltaNet(DeltaNetLayout),
}

impl MixerLayout {
    /// The linear layers of the normed input.
    #[must_use]
    pub fn inputs(&self) -> &[LinearLayout] {
        match self {
            Self::Attention(attention) => &attention.qkv,
            Self::DeltaNet(net) => &net.input,
        }
    }
}

/// The weights of attention.
#[derive(Clone, Debug)]
pub struct AttentionLayout {
    /// Queries, keys and values, and gates where there are any: one stacked matrix, or three where each has its own norm.
    pub qkv: Vec<LinearLayout>,
    /// Norms of the heads of queries and keys, before these are rotated.
    pub head_norms: Option<HeadNorms>,
    /// Norm before the output.
    pub sub_norm: Option<Norm>,
}

/// The weights of a gated delta net.
#[derive(Clone, Debug)]
pub struct DeltaNetLayout {
    /// Shape of its heads.
    pub shape: DeltaNetShape,
    /// Queries, keys and values, then `z`.
    pub input: Vec<LinearLayout>,
    /// The matrices `[value_heads, hidden]` that give `b` and `a`.
    pub gates: GatesLayout,
    /// Convolution, decay and norm.
    pub weights: DeltaNetWeights,
}

/// The matrices that give `b` and `a` of a delta net: ternary, or tables. The unused form's weights are no matrices.
#[derive(Clone, Debug)]
pub struct GatesLayout {
    /// Both, ternary, stacked.
    pub ternary: LinearLayout,
    /// Each as a table of floats; none where they are stored as ternary ones.
    pub dense: Option<[WeightId; 2]>,
}

/// A rotation of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rotation {
    /// Signs, if not all are +1.
    pub signs: Option<WeightId>,
    /// Columns of a block.
    pub block: usize,
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
    /// The rotation of its input, after all norms.
    pub rotation: Option<Rotation>,
    /// Ternary matrix.
    pub weight: WeightId,
    /// Bias.
    pub bias: Option<Bias>,
    /// Outputs, stacked ones together.
    pub outputs: usize,
    /// First column of its outputs, where several layers write to a row.
    pub column: usize,
}
