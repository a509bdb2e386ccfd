//! The one model configuration that all formats are read into.

mod parse;
mod rope;
#[cfg(test)]
mod tests;

use setun_ops::op::Activation;

use crate::{error::CheckpointError, files, tensor::TensorInfo};

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
    /// Number of layers.
    pub layers: usize,
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
    /// Whether the head is the embedding table.
    pub tied_head: bool,
    /// Whether the attention's linear layers have biases.
    pub attention_bias: bool,
    /// Whether the feed-forward's linear layers have biases.
    pub mlp_bias: bool,
    /// How linear layers are stored and scaled.
    pub quantization: Quantization,
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
}

/// The two linear layers of transformers' `BitNet` integration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinearClass {
    /// The stored scale multiplies; a bias enters before an offline scale, after an online one.
    AutoBitLinear,
    /// The stored scale divides; a bias enters after it.
    BitLinear,
}

/// Whether ternary codes are stored or computed (`quantization_mode`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuantizationMode {
    /// Codes and scales are stored.
    Offline,
    /// Master weights are stored, and quantized at load.
    Online,
    /// Floats are stored that are −s, 0 or +s, with scales s by tensor, row or group of columns.
    FakeQuantized,
}

/// Most layers, before tensors are known.
pub const MAX_LAYERS: usize = 65_536;

/// Most positions of a sequence: up to here every position is exact as an `f32`.
pub const MAX_CONTEXT: usize = 1 << 24;

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

    /// Every width must occur among the tensors, and every layer needs some: so nothing is
    /// allocated for sizes that only the configuration claims.
    pub(crate) fn check_sizes(&self, tensors: &[TensorInfo]) -> Result<(), CheckpointError> {
        let widest = tensors.iter().flat_map(|tensor| &tensor.shape).copied().max().unwrap_or(0);
        let fields = [
            ("vocab_size", self.vocab_size, widest),
            ("hidden_size", self.hidden_size, widest),
            ("intermediate_size", self.ffn_size, widest),
            ("num_attention_heads × head_dim", self.query_width(), widest),
            ("num_hidden_layers", self.layers, tensors.len()),
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
