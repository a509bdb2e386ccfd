//! The texts of `config.json` and `generation_config.json`.

#[cfg(test)]
mod tests;

use serde::Serialize;
use setun_ops::op::Activation;

use crate::{
    config::{LinearClass, ModelConfig, QuantizationMode, RopeScaling},
    error::CheckpointError,
    files,
    generation::GenerationDefaults,
    json,
};

/// The text of `config.json`, in transformers' names; `RoPE` in both spellings.
///
/// # Errors
///
/// [`CheckpointError::Json`] if a number cannot be written.
pub fn config_json(config: &ModelConfig) -> Result<String, CheckpointError> {
    let rope = rope(config);
    json::write_text(
        files::CONFIG,
        &Config {
            architectures: [&config.architecture],
            model_type: model_type(config),
            vocab_size: config.vocab_size,
            hidden_size: config.hidden_size,
            intermediate_size: config.ffn_size,
            num_hidden_layers: config.layers,
            num_attention_heads: config.heads,
            num_key_value_heads: config.kv_heads,
            head_dim: config.head_dim,
            hidden_act: match config.activation {
                Activation::ReluSquared => "relu2",
                Activation::Silu => "silu",
            },
            max_position_embeddings: config.context_length,
            rms_norm_eps: config.norm_eps,
            rope_theta: config.rope.theta,
            rope_scaling: (config.rope.scaling != RopeScaling::Default)
                .then_some(Rope { rope_theta: None, ..rope }),
            rope_parameters: rope,
            tie_word_embeddings: config.tied_head,
            attention_bias: config.attention_bias,
            mlp_bias: config.mlp_bias,
            bos_token_id: config.bos_token,
            eos_token_id: tokens(&config.eos_tokens),
            pretraining_model_parallel: Some(config.quantization.shards).filter(|&n| n > 1),
            quantization_config: quantization(config),
        },
    )
}

/// The text of `generation_config.json`.
///
/// # Errors
///
/// [`CheckpointError::Json`] if a number cannot be written.
pub fn generation_config_json(defaults: &GenerationDefaults) -> Result<String, CheckpointError> {
    json::write_text(
        files::GENERATION_CONFIG,
        &Generation {
            bos_token_id: defaults.bos,
            eos_token_id: defaults.eos_tokens.as_deref().and_then(tokens),
            do_sample: defaults.do_sample,
            temperature: defaults.temperature,
            top_k: defaults.top_k,
            top_p: defaults.top_p,
            min_p: defaults.min_p,
            repetition_penalty: defaults.repetition_penalty,
        },
    )
}

#[derive(Serialize)]
#[expect(clippy::struct_field_names, reason = "the file's names")]
struct Config<'a> {
    architectures: [&'a str; 1],
    model_type: &'a str,
    vocab_size: usize,
    hidden_size: usize,
    intermediate_size: usize,
    num_hidden_layers: usize,
    num_attention_heads: usize,
    num_key_value_heads: usize,
    head_dim: usize,
    hidden_act: &'a str,
    max_position_embeddings: usize,
    rms_norm_eps: f32,
    rope_theta: f64,
    rope_scaling: Option<Rope>,
    rope_parameters: Rope,
    tie_word_embeddings: bool,
    attention_bias: bool,
    mlp_bias: bool,
    bos_token_id: Option<u32>,
    eos_token_id: Option<Tokens<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pretraining_model_parallel: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    quantization_config: Option<QuantizationConfig>,
}

#[derive(Clone, Copy, Serialize)]
#[expect(clippy::struct_field_names, reason = "the file's names")]
struct Rope {
    rope_type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    rope_theta: Option<f64>,
    #[serde(flatten)]
    scaling: Option<Scaling>,
}

#[derive(Clone, Copy, Serialize)]
#[serde(untagged)]
enum Scaling {
    Llama3 {
        factor: f32,
        low_freq_factor: f32,
        high_freq_factor: f32,
        original_max_position_embeddings: usize,
    },
    Yarn {
        factor: f32,
        beta_fast: f32,
        beta_slow: f32,
        original_max_position_embeddings: usize,
        #[serde(skip_serializing_if = "Option::is_none")]
        attention_factor: Option<f32>,
    },
}

#[derive(Serialize)]
#[serde(untagged)]
enum QuantizationConfig {
    BitNet {
        quant_method: &'static str,
        linear_class: &'static str,
        quantization_mode: &'static str,
        use_rms_norm: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        rms_norm_eps: Option<f32>,
        modules_to_not_convert: [&'static str; 1],
    },
    Affine {
        group_size: usize,
        bits: u8,
        mode: &'static str,
    },
}

#[derive(Serialize)]
struct Generation<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    bos_token_id: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    eos_token_id: Option<Tokens<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    do_sample: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_k: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    min_p: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    repetition_penalty: Option<f32>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Tokens<'a> {
    One(u32),
    Several(&'a [u32]),
}

fn model_type(config: &ModelConfig) -> &'static str {
    if config.head_norms {
        "qwen3"
    } else if config.sub_norms {
        "bitnet"
    } else {
        "llama"
    }
}

fn tokens(tokens: &[u32]) -> Option<Tokens<'_>> {
    match tokens {
        [] => None,
        [token] => Some(Tokens::One(*token)),
        several => Some(Tokens::Several(several)),
    }
}

fn rope(config: &ModelConfig) -> Rope {
    let rope_theta = Some(config.rope.theta);
    match config.rope.scaling {
        RopeScaling::Default => Rope { rope_type: "default", rope_theta, scaling: None },
        RopeScaling::Llama3 { factor, low_freq_factor, high_freq_factor, original_context } => {
            let scaling = Some(Scaling::Llama3 {
                factor,
                low_freq_factor,
                high_freq_factor,
                original_max_position_embeddings: original_context,
            });
            Rope { rope_type: "llama3", rope_theta, scaling }
        }
        RopeScaling::Yarn { factor, beta_fast, beta_slow, original_context, attention_factor } => {
            let scaling = Some(Scaling::Yarn {
                factor,
                beta_fast,
                beta_slow,
                original_max_position_embeddings: original_context,
                attention_factor,
            });
            Rope { rope_type: "yarn", rope_theta, scaling }
        }
    }
}

/// None where floats are ternary as they are.
fn quantization(config: &ModelConfig) -> Option<QuantizationConfig> {
    let quantization = &config.quantization;
    let quantization_mode = match quantization.mode {
        QuantizationMode::Offline => "offline",
        QuantizationMode::Online => "online",
        QuantizationMode::FakeQuantized => return None,
        QuantizationMode::Affine { group } => {
            return Some(QuantizationConfig::Affine { group_size: group, bits: 2, mode: "affine" });
        }
    };
    Some(QuantizationConfig::BitNet {
        quant_method: "bitnet",
        linear_class: match quantization.linear_class {
            LinearClass::AutoBitLinear => "autobitlinear",
            LinearClass::BitLinear => "bitlinear",
        },
        quantization_mode,
        use_rms_norm: quantization.linear_norm_eps.is_some(),
        rms_norm_eps: quantization.linear_norm_eps,
        modules_to_not_convert: ["lm_head"],
    })
}
