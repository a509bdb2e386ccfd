//! The texts of `config.json` and `generation_config.json`.

#[cfg(test)]
mod tests;

use serde_json::{Map, Value, json};
use setun_ops::{HAS_RECURRENT, delta_net::HeadOrder, op::Activation};

use crate::{
    config::{
        ACTIVATION_GROUP, FULL, HADAMARD, LINEAR, Mixer, ModelConfig, NORMS_INCLUDE_ONE, ORDER,
        OUTPUT_ORDER, QuantizationMode, RopeScaling, name_of_order, part_of,
    },
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
    let scaling = scaling(config);
    let mut parameters = scaling.clone();
    parameters["rope_theta"] = json!(config.rope.theta);
    let mut text = json!({
        "architectures": [config.architecture],
        "model_type": model_type(config),
        "vocab_size": config.vocab_size,
        "hidden_size": config.hidden_size,
        "intermediate_size": config.ffn_size,
        "num_hidden_layers": config.layers.len(),
        "num_attention_heads": config.heads,
        "num_key_value_heads": config.kv_heads,
        "head_dim": config.head_dim,
        "hidden_act": match config.activation {
            Activation::ReluSquared => "relu2",
            Activation::Silu => "silu",
        },
        "max_position_embeddings": config.context_length,
        "rms_norm_eps": short(config.norm_eps),
        "rope_theta": config.rope.theta,
        "rope_scaling": (config.rope.scaling != RopeScaling::Default).then_some(scaling),
        "rope_parameters": parameters,
        "tie_word_embeddings": config.tied_head,
        "attention_bias": config.attention_bias,
        "mlp_bias": config.mlp_bias,
        "bos_token_id": config.bos_token,
        "eos_token_id": tokens(&config.eos_tokens),
    });
    if config.attention_gate && HAS_RECURRENT {
        add_hybrid(config, &mut text);
    }
    if let Some(hadamard) = config.hadamard.as_ref().filter(|_| HAS_RECURRENT) {
        text[HADAMARD] = hadamard.to_json();
    }
    if config.quantization.shards > 1 {
        text["pretraining_model_parallel"] = json!(config.quantization.shards);
    }
    if let Some(quantization) = quantization(config) {
        text["quantization_config"] = quantization;
    }
    json::write_text(files::CONFIG, &text)
}

/// The fields of a hybrid model.
fn add_hybrid(config: &ModelConfig, text: &mut Value) {
    let part = part_of(config.rope.dimensions, config.head_dim);
    text["rope_parameters"]["partial_rotary_factor"] = json!(part);
    text["attn_output_gate"] = json!(true);
    let name = |layer: &Mixer| if layer.delta_net().is_some() { LINEAR } else { FULL };
    text["layer_types"] = config.layers.iter().map(name).collect();
    if !config.unit_norms {
        text[NORMS_INCLUDE_ONE] = json!(true);
    }
    let Some(shape) = config.layers.iter().find_map(|layer| layer.delta_net()) else {
        return;
    };
    text["linear_num_key_heads"] = json!(shape.key_heads);
    text["linear_num_value_heads"] = json!(shape.value_heads);
    text["linear_key_head_dim"] = json!(shape.key_dim);
    text["linear_value_head_dim"] = json!(shape.value_dim);
    text["linear_conv_kernel_dim"] = json!(shape.kernel);
    for (key, order) in [(ORDER, shape.order), (OUTPUT_ORDER, shape.output_order)] {
        if order != HeadOrder::Grouped {
            text[key] = json!(name_of_order(order));
        }
    }
}

/// The text of `generation_config.json`.
///
/// # Errors
///
/// [`CheckpointError::Json`] if a number cannot be written.
pub fn generation_config_json(defaults: &GenerationDefaults) -> Result<String, CheckpointError> {
    let fields = [
        ("bos_token_id", json!(defaults.bos)),
        ("eos_token_id", defaults.eos_tokens.as_deref().map_or(Value::Null, tokens)),
        ("do_sample", json!(defaults.do_sample)),
        ("temperature", json!(defaults.temperature.map(short))),
        ("top_k", json!(defaults.top_k)),
        ("top_p", json!(defaults.top_p.map(short))),
        ("min_p", json!(defaults.min_p.map(short))),
        ("repetition_penalty", json!(defaults.repetition_penalty.map(short))),
    ];
    let known = fields.into_iter().filter(|(_, value)| !value.is_null());
    let text: Map<_, _> = known.map(|(key, value)| (key.to_owned(), value)).collect();
    json::write_text(files::GENERATION_CONFIG, &text)
}

/// The shortest decimal number that is read as this `f32`.
fn short(number: f32) -> f64 {
    number.to_string().parse().unwrap_or(f64::from(number))
}

fn model_type(config: &ModelConfig) -> &'static str {
    if config.attention_gate {
        "qwen3_5_text"
    } else if config.head_norms {
        "qwen3"
    } else if config.sub_norms {
        "bitnet"
    } else {
        "llama"
    }
}

fn tokens(tokens: &[u32]) -> Value {
    match tokens {
        [] => Value::Null,
        [token] => json!(token),
        several => json!(several),
    }
}

fn scaling(config: &ModelConfig) -> Value {
    match config.rope.scaling {
        RopeScaling::Default => json!({ "rope_type": "default" }),
        RopeScaling::Llama3 { factor, low_freq_factor, high_freq_factor, original_context } => {
            json!({
                "rope_type": "llama3",
                "factor": short(factor),
                "low_freq_factor": short(low_freq_factor),
                "high_freq_factor": short(high_freq_factor),
                "original_max_position_embeddings": original_context,
            })
        }
        RopeScaling::Yarn { factor, beta_fast, beta_slow, original_context, attention_factor } => {
            let mut yarn = json!({
                "rope_type": "yarn",
                "factor": short(factor),
                "beta_fast": short(beta_fast),
                "beta_slow": short(beta_slow),
                "original_max_position_embeddings": original_context,
            });
            if let Some(factor) = attention_factor {
                yarn["attention_factor"] = json!(short(factor));
            }
            yarn
        }
    }
}

/// None where floats are ternary as they are.
fn quantization(config: &ModelConfig) -> Option<Value> {
    let quantization = &config.quantization;
    let mode = match quantization.mode {
        QuantizationMode::Offline => "offline",
        QuantizationMode::Online => "online",
        QuantizationMode::FakeQuantized => return None,
        QuantizationMode::Affine { group } => {
            let mut text = json!({ "group_size": group, "bits": 2, "mode": "affine" });
            if quantization.activation_group != Some(ACTIVATION_GROUP) {
                text["activation_group"] =
                    quantization.activation_group.map_or(json!("row"), |group| json!(group));
            }
            return Some(text);
        }
    };
    let mut text = json!({
        "quant_method": "bitnet",
        "linear_class": quantization.linear_class.name(),
        "quantization_mode": mode,
        "use_rms_norm": quantization.linear_norm_eps.is_some(),
        "modules_to_not_convert": ["lm_head"],
    });
    if let Some(eps) = quantization.linear_norm_eps {
        text["rms_norm_eps"] = json!(short(eps));
    }
    if let Some(group) = quantization.activation_group {
        text["activation_group"] = json!(group);
    }
    Some(text)
}
