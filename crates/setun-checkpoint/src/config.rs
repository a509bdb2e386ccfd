//! The one model configuration that all formats are read into.

mod family;
mod hadamard;
pub(crate) mod known_fields;
mod layers;
mod parse;
mod quantization;
mod rope;
#[cfg(test)]
mod tests;

use setun_ops::op::Activation;

pub use hadamard::Hadamard;
pub use layers::{MAX_KERNEL, Mixer};

pub(crate) use family::QWEN35_TEXT;
pub(crate) use hadamard::{HEAD, KEY as HADAMARD, TABLE, columns};
pub(crate) use layers::{FULL, LINEAR, ORDER, OUTPUT_ORDER, name_of_order};
pub(crate) use rope::part_of;

use crate::{error::CheckpointError, files, json::Fields, tensor::TensorInfo};

/// What a checkpoint says about its model, checked: sizes are positive, heads share evenly,
/// numbers are finite.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own in the file")]
pub struct ModelConfig {
    /// Architecture name as the file gives it, for example `BitNetForCausalLM`.
    pub architecture: String,
    /// Tokens of the vocabulary.
    pub vocab_size: usize,
    /// Width of the residual stream.
    pub hidden_size: usize,
    /// Width between gate and down.
    pub ffn_size: usize,
    /// The layers, in order.
    pub layers: Vec<Mixer>,
    /// Query heads.
    pub heads: usize,
    /// Key and value heads.
    pub kv_heads: usize,
    /// Width of a head.
    pub head_dim: usize,
    /// Most positions of a sequence.
    pub context_length: usize,
    /// Activation of the gate.
    pub activation: Activation,
    /// Epsilon of the model's norms.
    pub norm_eps: f32,
    /// Rotary position embedding.
    pub rope: RopeConfig,
    /// Whether attention and feed-forward have a norm before their last linear layer.
    pub sub_norms: bool,
    /// Whether each head of the queries and of the keys has a norm before it is rotated (qk-norm),
    /// with one gain for all heads of a layer and [`norm_eps`](Self::norm_eps).
    pub head_norms: bool,
    /// Whether each attention head has a gate. Its columns follow the head's query in the query matrix;
    /// the head's output is multiplied by the sigmoid of the gate.
    pub attention_gate: bool,
    /// Whether norms are stored without the 1 that is added to each gain. The norm of a delta net's
    /// heads is stored as it is.
    pub unit_norms: bool,
    /// Whether the head is the embedding table.
    pub tied_head: bool,
    /// Whether the attention's linear layers have biases.
    pub attention_bias: bool,
    /// Whether the feed-forward's linear layers have biases.
    pub mlp_bias: bool,
    /// How linear layers are stored and scaled.
    pub quantization: Quantization,
    /// The rotation of inputs that the weights were trained for, where there is one.
    pub hadamard: Option<Hadamard>,
    /// First token of a text, if the configuration names one.
    pub bos_token: Option<u32>,
    /// Tokens that end a text: those of `generation_config.json`, else of `config.json`.
    pub eos_tokens: Vec<u32>,
}

/// Rotary position embedding.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RopeConfig {
    /// Base of the frequencies.
    pub theta: f64,
    /// Leading columns of a head that are rotated, an even number; the head's width where all are.
    pub dimensions: usize,
    /// Rescaling of the frequencies.
    pub scaling: RopeScaling,
}

/// Rescaling of the frequencies of [`RopeConfig`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RopeScaling {
    /// None.
    Default,
    /// Llama 3.1's: long wavelengths are divided by `factor`, with a smooth passage.
    Llama3 {
        /// Divisor of low frequencies.
        factor: f32,
        /// Wavelengths above `original_context / low_freq_factor` are scaled.
        low_freq_factor: f32,
        /// Wavelengths below `original_context / high_freq_factor` are kept.
        high_freq_factor: f32,
        /// Context that the frequencies were made for.
        original_context: usize,
    },
    /// `YaRN`: pairs that turn more than `beta_fast` times within the original context stay, those
    /// that turn less than `beta_slow` times are divided by `factor`, with a straight passage.
    Yarn {
        /// Divisor of low frequencies.
        factor: f32,
        /// Turns above which a pair stays.
        beta_fast: f32,
        /// Turns below which a pair is divided.
        beta_slow: f32,
        /// Context that the frequencies were made for.
        original_context: usize,
        /// Factor of cosines and sines; `0.1 ln(factor) + 1` where there is none.
        attention_factor: Option<f32>,
    },
}

/// How linear layers are stored and scaled (`quantization_config`).
#[derive(Clone, Debug, PartialEq)]
pub struct Quantization {
    /// What the stored scale does and where a bias enters.
    pub linear_class: LinearClass,
    /// Whether codes are stored, or computed from master weights.
    pub mode: QuantizationMode,
    /// Epsilon of a norm before each linear layer (`use_rms_norm`), where there is one.
    pub linear_norm_eps: Option<f32>,
    /// Shards that the model was trained in (`pretraining_model_parallel`), 1 where it says none.
    /// [`QuantizationMode::FakeQuantized`] weights have at most as many scales, or one in each
    /// group: queries, keys, values, gate and up one for each run of `rows / shards` rows; output
    /// and down one for each run of `columns / shards` columns.
    pub shards: usize,
    /// Columns of activations that share a scale (`activation_group`), a multiple of 32; none where all of
    /// a row do, as `BitNet` is trained. Models that were trained with float activations have
    /// [`ACTIVATION_GROUP`].
    pub activation_group: Option<usize>,
}

/// Columns of activations that share a scale where a model was trained with float activations.
pub const ACTIVATION_GROUP: usize = 128;

/// The two linear layers of transformers' `BitNet` integration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinearClass {
    /// The stored scale multiplies; a bias enters before an offline scale, after an online one.
    AutoBitLinear,
    /// The stored scale divides; a bias enters after it.
    BitLinear,
}

impl LinearClass {
    /// The name in a configuration (`linear_class`).
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::AutoBitLinear => "autobitlinear",
            Self::BitLinear => "bitlinear",
        }
    }
}

/// Whether ternary codes are stored or computed (`quantization_mode`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuantizationMode {
    /// Codes and scales are stored.
    Offline,
    /// Master weights are stored, and quantized at load.
    Online,
    /// Floats are stored that are ternary already: each is −s, 0 or +s. The scale `s` is that of the
    /// tensor, of its row, or of the group of columns that it stands in, and is the magnitude
    /// found there: nothing is computed anew, and nothing is rescaled. A value of another magnitude
    /// means that the model is not ternary.
    ///
    /// So it is where a Llama or a Qwen3 has no `quantization_config`: the unpacked Ternary-Bonsai
    /// (a scale for each 128 columns of a row) and `TriLM` (one for each shard of
    /// [`Quantization::shards`]).
    FakeQuantized,
    /// MLX's affine codes of two bits: `weight` is `U32 [out, in / 16]`, low bits first along a row;
    /// `scales` and `biases` are `[out, in / group]`; a weight is `scale × code + bias`. It is
    /// ternary where each weight is 0 or ± its `scale`. Tables are stored so too. See
    /// [`affine`](crate::affine).
    Affine {
        /// Columns that share a scale and a bias.
        group: usize,
    },
}

/// `model_type` of MLX's packs of rotated weights of the hybrid family.
pub(crate) const PRISM_MODEL_TYPE: &str = "prism_hadamard_qwen35";

/// The field of `config.json` that says that norms are stored with the 1 that is added to each gain, as
/// GGUF and MLX have them. It is setun's own: transformers has no such files.
pub(crate) const NORMS_INCLUDE_ONE: &str = "norms_include_one";

/// Most layers, before tensors are known.
pub const MAX_LAYERS: usize = 65_536;

/// Most positions of a sequence: up to here every position is exact as an `f32`.
pub const MAX_CONTEXT: usize = 1 << 24;

/// Widest head: with it the tables of positions are bounded, which grow with the configuration and
/// not with the file.
pub const MAX_HEAD_DIM: usize = 1024;

/// Most tokens of a vocabulary, before tensors are known.
pub const MAX_VOCAB: usize = 1 << 24;

impl ModelConfig {
    /// Columns of the queries: `heads × head_dim`.
    #[must_use]
    pub fn query_width(&self) -> usize {
        self.heads * self.head_dim
    }

    /// Columns of the keys, and of the values: `kv_heads × head_dim`.
    #[must_use]
    pub fn kv_width(&self) -> usize {
        self.kv_heads * self.head_dim
    }

    /// Channels of the convolutions of delta nets, 0 without any.
    fn delta_net_channels(&self) -> usize {
        let shapes = self.layers.iter().filter_map(|layer| layer.delta_net());
        shapes.map(|shape| shape.channels()).max().unwrap_or(0)
    }

    /// Every width must occur among the tensors, and every layer needs some: so nothing is
    /// allocated for sizes that only the configuration claims.
    pub(crate) fn check_sizes(&self, tensors: &[TensorInfo]) -> Result<(), CheckpointError> {
        let widest = tensors.iter().flat_map(|tensor| &tensor.shape).copied().max().unwrap_or(0);
        let fields = [
            ("vocab_size", self.vocab_size, widest),
            ("hidden_size", self.hidden_size, widest),
            ("intermediate_size", self.ffn_size, widest),
            ("num_attention_heads × head_dim", self.query_width(), widest),
            ("channels of the delta nets", self.delta_net_channels(), widest),
            ("num_hidden_layers", self.layers.len(), tensors.len()),
        ];
        match fields.into_iter().find(|(_, found, limit)| found > limit) {
            None => Ok(()),
            Some((field, found, limit)) => {
                let file = files::CONFIG.to_owned();
                Err(CheckpointError::ConfigSize { file, field, found, limit })
            }
        }
    }
}

/// The error for a kind of model that cannot be computed here.
fn unsupported(
    fields: &Fields<'_>,
    what: &'static str,
    found: &str,
    supported: &'static str,
) -> CheckpointError {
    let (file, found) = (fields.file().to_owned(), found.to_owned());
    CheckpointError::UnsupportedModel { file, what, found, supported }
}
