//! Model families by name, and each family's defaults for what a configuration leaves out.

use serde_json::{Map, Value};
use setun_ops::HAS_RECURRENT;

use super::{PRISM_MODEL_TYPE, hadamard, unsupported};
use crate::{error::CheckpointError, files, json::Fields};

/// What a missing field means depends on the family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    /// Microsoft's, and transformers' own.
    BitNet,
    /// 1bitLLM's, which was made from Llama before there was another.
    OlderBitNet,
    Llama,
    Qwen3,
    /// The hybrid family of Qwen3.5, Qwen3.6 and Qwen3.8.
    Qwen35,
}

/// The fields' values where a file leaves them out, as transformers has them.
pub(super) struct Defaults {
    pub(super) vocab_size: usize,
    pub(super) hidden_size: usize,
    pub(super) ffn_size: usize,
    pub(super) layers: usize,
    pub(super) heads: usize,
    pub(super) kv_heads: Option<usize>, // none: as many as heads
    pub(super) head_dim: Option<usize>, // none: hidden_size / heads
    pub(super) hidden_act: &'static str,
    pub(super) context_length: usize,
    pub(super) norm_eps: f32,
    pub(super) rope_theta: f64,
    pub(super) bos_token: Option<u32>,
    pub(super) eos_token: Option<u32>,
}

const BITNET: Defaults = Defaults {
    vocab_size: 128_256,
    hidden_size: 2560,
    ffn_size: 6912,
    layers: 30,
    heads: 20,
    kv_heads: Some(5),
    head_dim: None,
    hidden_act: "relu2",
    context_length: 2048,
    norm_eps: 1e-5,
    rope_theta: 500_000.0,
    bos_token: Some(128_000),
    eos_token: Some(128_001),
};

const LLAMA: Defaults = Defaults {
    vocab_size: 32_000,
    hidden_size: 4096,
    ffn_size: 11_008,
    layers: 32,
    heads: 32,
    kv_heads: None,
    head_dim: None,
    hidden_act: "silu",
    context_length: 2048,
    norm_eps: 1e-6,
    rope_theta: 10_000.0,
    bos_token: Some(1),
    eos_token: Some(2),
};

const QWEN3: Defaults = Defaults {
    vocab_size: 151_936,
    hidden_size: 4096,
    ffn_size: 22_016,
    layers: 32,
    heads: 32,
    kv_heads: Some(32),
    head_dim: Some(128),
    hidden_act: "silu",
    context_length: 32_768,
    norm_eps: 1e-6,
    rope_theta: 10_000.0,
    bos_token: None,
    eos_token: None,
};

const QWEN35: Defaults = Defaults {
    vocab_size: 248_320,
    hidden_size: 4096,
    ffn_size: 12_288,
    layers: 32,
    heads: 16,
    kv_heads: Some(4),
    head_dim: Some(256),
    hidden_act: "silu",
    context_length: 32_768,
    norm_eps: 1e-6,
    rope_theta: 10_000.0,
    bos_token: None,
    eos_token: None,
};

impl Family {
    pub(super) fn defaults(self) -> Defaults {
        match self {
            Self::BitNet => BITNET,
            Self::OlderBitNet | Self::Llama => LLAMA,
            Self::Qwen3 => QWEN3,
            Self::Qwen35 => QWEN35,
        }
    }

    pub(super) fn is_bitnet(self) -> bool {
        matches!(self, Self::BitNet | Self::OlderBitNet)
    }

    /// Part of a head's columns that is rotated, unless the file says another.
    pub(super) fn rotated_part(self) -> f64 {
        if self == Self::Qwen35 { 0.25 } else { 1.0 }
    }
}

/// Name of the hybrid family's text model.
pub(crate) const QWEN35_TEXT: &str = "Qwen3_5ForCausalLM";

/// Name of the hybrid family's model of text and images, of which the text model is a part.
const QWEN35_WRAPPER: &str = "Qwen3_5ForConditionalGeneration";

/// The fields of the text model, which stand in `text_config` where a file describes images as
/// well. Those outside hold for it unless they stand there too.
pub(super) fn text_fields(map: Map<String, Value>) -> Result<Map<String, Value>, CheckpointError> {
    const KEPT: [&str; 2] = ["architectures", "model_type"];
    if !HAS_RECURRENT {
        return Ok(map);
    }
    let fields = Fields::new(files::CONFIG, &map);
    let inner = fields.get("text_config", "an object", Value::as_object)?.cloned();
    let is_wrapper = matches!(parse(&fields), Ok((_, Family::Qwen35)));
    let mut map = map;
    for (key, value) in inner.into_iter().flatten().filter(|_| is_wrapper) {
        if !value.is_null() && !KEPT.contains(&key.as_str()) {
            map.insert(key, value);
        }
    }
    Ok(map)
}

/// The architecture's name and family: by `architectures`, else by `model_type`.
pub(super) fn parse(fields: &Fields<'_>) -> Result<(String, Family), CheckpointError> {
    let listed = fields.texts("architectures")?.unwrap_or_default();
    let model_type = fields.text("model_type")?;
    let (what, found) = match (listed.first(), model_type) {
        (Some(&listed), _) => ("architecture", listed),
        (None, Some(model_type)) => ("model_type", model_type),
        (None, None) => return Err(fields.absent("architectures", "a list of one architecture")),
    };
    let is_older =
        model_type == Some("llama") || fields.has("weight_bits") || fields.has("input_bits");
    let bitnet = if is_older { Family::OlderBitNet } else { Family::BitNet };
    let (name, family) = match found {
        "BitNetForCausalLM" | "BitnetForCausalLM" => (found, bitnet),
        "LlamaForCausalLM" => (found, Family::Llama),
        "Qwen3ForCausalLM" => (found, Family::Qwen3),
        QWEN35_TEXT | QWEN35_WRAPPER => (QWEN35_TEXT, Family::Qwen35),
        "bitnet" => ("BitNetForCausalLM", bitnet),
        "llama" => ("LlamaForCausalLM", Family::Llama),
        "qwen3" => ("Qwen3ForCausalLM", Family::Qwen3),
        "qwen3_5" | "qwen3_5_text" | PRISM_MODEL_TYPE => (QWEN35_TEXT, Family::Qwen35),
        _ => {
            let supported = "BitNetForCausalLM (bitnet), LlamaForCausalLM (llama), \
                 Qwen3ForCausalLM (qwen3), Qwen3_5ForCausalLM (qwen3_5_text), \
                 Qwen3_5ForConditionalGeneration (qwen3_5)";
            return Err(unsupported(fields, what, found, supported));
        }
    };
    Ok((name.to_owned(), family))
}

/// Refuses what would compute something else than this library does.
pub(super) fn refuse_variants(fields: &Fields<'_>, family: Family) -> Result<(), CheckpointError> {
    if fields.flag("use_sliding_window")? == Some(true) {
        return Err(unsupported(fields, "use_sliding_window", "true", "false: full attention"));
    }
    if fields.flag("attn_output_gate")? == Some(family != Family::Qwen35) {
        let (found, supported) = if family == Family::Qwen35 {
            ("false", "true: a gate of attention")
        } else {
            ("true", "false: attention without a gate")
        };
        return Err(unsupported(fields, "attn_output_gate", found, supported));
    }
    refuse_rotated(fields, &[hadamard::KEY])?;
    for part in ["quantization", "quantization_config"] {
        if let Ok(quantization) = fields.object(part) {
            refuse_rotated(&quantization, &[])?;
        }
    }
    // 1bitLLM writes 1 where it means 1.58.
    expect_bits(fields, "weight_bits", |bits| bits == 1.0 || bits == 1.58, "1, 1.58")?;
    expect_bits(fields, "input_bits", |bits| bits == 8.0, "8")
}

/// Refuses a declared transform that is not read: the inputs of rotated weights would have to be rotated as well.
fn refuse_rotated(fields: &Fields<'_>, read: &[&str]) -> Result<(), CheckpointError> {
    let is_rotation = |key: &&str| {
        !read.contains(key) && key.contains("hadamard")
            || ["transform_config", "rotation", "rotation_config"].contains(key)
    };
    match fields.keys().find(is_rotation) {
        Some(key) if fields.is_set(key) => {
            Err(unsupported(fields, "the field", key, "weights that are not rotated"))
        }
        _ => Ok(()),
    }
}

fn expect_bits(
    fields: &Fields<'_>,
    what: &'static str,
    accept: impl Fn(f64) -> bool,
    supported: &'static str,
) -> Result<(), CheckpointError> {
    match fields.number(what, "a number", |_| true)? {
        Some(found) if !accept(found) => {
            Err(unsupported(fields, what, &found.to_string(), supported))
        }
        _ => Ok(()),
    }
}
