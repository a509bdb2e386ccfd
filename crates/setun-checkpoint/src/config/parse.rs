//! Reads `config.json`.

use serde_json::{Map, Value};
use setun_ops::{op::Activation, ternary::MAX_COLUMNS};

use super::{
    LinearClass, MAX_CONTEXT, MAX_LAYERS, MAX_VOCAB, ModelConfig, Quantization, QuantizationMode,
    rope,
};
use crate::{
    error::CheckpointError,
    files,
    generation::{GenerationDefaults, first_token, number},
    json::{self, Fields},
};

/// What a missing field means depends on the family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    BitNet,
    Llama,
}

/// The fields' values where a file leaves them out, as transformers has them.
struct Defaults {
    vocab_size: usize,
    hidden_size: usize,
    ffn_size: usize,
    layers: usize,
    heads: usize,
    kv_heads: Option<usize>, // none: as many as heads
    hidden_act: &'static str,
    context_length: usize,
    norm_eps: f32,
    rope_theta: f64,
    bos_token: u32,
    eos_token: u32,
}

const BITNET: Defaults = Defaults {
    vocab_size: 128_256,
    hidden_size: 2560,
    ffn_size: 6912,
    layers: 30,
    heads: 20,
    kv_heads: Some(5),
    hidden_act: "relu2",
    context_length: 2048,
    norm_eps: 1e-5,
    rope_theta: 500_000.0,
    bos_token: 128_000,
    eos_token: 128_001,
};

const LLAMA: Defaults = Defaults {
    vocab_size: 32_000,
    hidden_size: 4096,
    ffn_size: 11_008,
    layers: 32,
    heads: 32,
    kv_heads: None,
    hidden_act: "silu",
    context_length: 2048,
    norm_eps: 1e-6,
    rope_theta: 10_000.0,
    bos_token: 1,
    eos_token: 2,
};

impl ModelConfig {
    /// Reads `config.json`; `generation` decides the tokens that begin and end a text, where it
    /// names any.
    ///
    /// # Errors
    ///
    /// If the text is not JSON, a field is out of its range, or the model is of a kind that is
    /// not supported.
    pub fn parse(bytes: &[u8], generation: &GenerationDefaults) -> Result<Self, CheckpointError> {
        let map: Map<String, Value> = json::read(files::CONFIG, bytes)?;
        let fields = Fields::new(files::CONFIG, &map);
        let (architecture, family) = parse_architecture(&fields)?;
        let defaults = family.defaults();
        let size = |key, limit, default| Ok(fields.size(key, limit)?.unwrap_or(default));
        let flag = |key| Ok(fields.flag(key)?.unwrap_or(false));
        let hidden_size = size("hidden_size", MAX_COLUMNS, defaults.hidden_size)?;
        let heads = size("num_attention_heads", MAX_COLUMNS, defaults.heads)?;
        Ok(Self {
            architecture,
            vocab_size: size("vocab_size", MAX_VOCAB, defaults.vocab_size)?,
            hidden_size,
            ffn_size: size("intermediate_size", MAX_COLUMNS, defaults.ffn_size)?,
            layers: size("num_hidden_layers", MAX_LAYERS, defaults.layers)?,
            heads,
            kv_heads: parse_kv_heads(&fields, heads, &defaults)?,
            head_dim: parse_head_dim(&fields, family, hidden_size, heads)?,
            context_length: size("max_position_embeddings", MAX_CONTEXT, defaults.context_length)?,
            activation: parse_activation(&fields, &defaults)?,
            norm_eps: parse_eps(&fields)?.unwrap_or(defaults.norm_eps),
            rope: rope::parse(&fields, defaults.rope_theta)?,
            sub_norms: family == Family::BitNet,
            tied_head: flag("tie_word_embeddings")?,
            attention_bias: flag("attention_bias")?,
            mlp_bias: flag("mlp_bias")?,
            quantization: parse_quantization(&fields, family)?,
            bos_token: parse_bos(&fields, generation, &defaults)?,
            eos_tokens: parse_eos(&fields, generation, &defaults)?,
        })
    }
}

impl Family {
    fn defaults(self) -> Defaults {
        match self {
            Self::BitNet => BITNET,
            Self::Llama => LLAMA,
        }
    }
}

/// The architecture's name and family: by `architectures`, else by `model_type`.
fn parse_architecture(fields: &Fields<'_>) -> Result<(String, Family), CheckpointError> {
    let listed = fields.texts("architectures")?.unwrap_or_default();
    let (what, found) = match (listed.first(), fields.text("model_type")?) {
        (Some(&listed), _) => ("architecture", listed),
        (None, Some(model_type)) => ("model_type", model_type),
        (None, None) => return Err(fields.absent("architectures", "a list of one architecture")),
    };
    match found {
        "BitNetForCausalLM" | "BitnetForCausalLM" => Ok((found.to_owned(), Family::BitNet)),
        "LlamaForCausalLM" => Ok((found.to_owned(), Family::Llama)),
        "bitnet" => Ok(("BitNetForCausalLM".to_owned(), Family::BitNet)),
        "llama" => Ok(("LlamaForCausalLM".to_owned(), Family::Llama)),
        _ => Err(unsupported(
            fields,
            what,
            found,
            "BitNetForCausalLM (bitnet), LlamaForCausalLM (llama)",
        )),
    }
}

fn parse_kv_heads(
    fields: &Fields<'_>,
    heads: usize,
    defaults: &Defaults,
) -> Result<usize, CheckpointError> {
    const KEY: &str = "num_key_value_heads";
    let absent = if fields.has(KEY) { None } else { defaults.kv_heads };
    let kv_heads = fields.size(KEY, MAX_COLUMNS)?.or(absent).unwrap_or(heads);
    if heads.is_multiple_of(kv_heads) {
        return Ok(kv_heads);
    }
    let expected = format!("a divisor of num_attention_heads, {heads}");
    Err(fields.error(KEY, &expected, &kv_heads.to_string()))
}

fn parse_head_dim(
    fields: &Fields<'_>,
    family: Family,
    hidden_size: usize,
    heads: usize,
) -> Result<usize, CheckpointError> {
    const KEY: &str = "head_dim";
    let head_dim = match fields.size(KEY, MAX_COLUMNS)? {
        Some(head_dim) => head_dim,
        None if hidden_size.is_multiple_of(heads) => hidden_size / heads,
        None => {
            let expected = format!("a divisor of hidden_size, {hidden_size}");
            return Err(fields.error("num_attention_heads", &expected, &heads.to_string()));
        }
    };
    let width = heads.saturating_mul(head_dim);
    let expected = if !head_dim.is_multiple_of(2) {
        "an even number".to_owned()
    } else if width > MAX_COLUMNS {
        format!("at most {MAX_COLUMNS} columns in {heads} heads")
    } else if family == Family::BitNet && width != hidden_size {
        format!("hidden_size / num_attention_heads, {hidden_size} / {heads}")
    } else {
        return Ok(head_dim);
    };
    Err(fields.error(KEY, &expected, &head_dim.to_string()))
}

fn parse_activation(
    fields: &Fields<'_>,
    defaults: &Defaults,
) -> Result<Activation, CheckpointError> {
    match fields.text("hidden_act")?.unwrap_or(defaults.hidden_act) {
        "relu2" => Ok(Activation::ReluSquared),
        "silu" | "swish" => Ok(Activation::Silu),
        found => Err(unsupported(fields, "hidden_act", found, "relu2, silu")),
    }
}

fn parse_eps(fields: &Fields<'_>) -> Result<Option<f32>, CheckpointError> {
    number(fields, "rms_norm_eps", "a number of at least 0", |x| x >= 0.0)
}

fn parse_quantization(
    fields: &Fields<'_>,
    family: Family,
) -> Result<Quantization, CheckpointError> {
    let quantization = fields.object("quantization_config")?;
    match quantization.text("quant_method")? {
        Some("bitnet") => {}
        None if family == Family::BitNet && !quantization.is_present() => return Ok(MASTER),
        found => {
            let found = found.unwrap_or("none");
            return Err(unsupported(fields, "quant_method", found, "bitnet"));
        }
    }
    refuse_dense_layers(&quantization)?;
    let linear_norm_eps = match quantization.flag("use_rms_norm")? {
        Some(true) => Some(parse_eps(&quantization)?.unwrap_or(1e-6)),
        _ => None,
    };
    let linear_class = match quantization.text("linear_class")?.unwrap_or("bitlinear") {
        "bitlinear" => LinearClass::BitLinear,
        "autobitlinear" => LinearClass::AutoBitLinear,
        found => {
            return Err(unsupported(fields, "linear_class", found, "bitlinear, autobitlinear"));
        }
    };
    let mode = match quantization.text("quantization_mode")?.unwrap_or("offline") {
        "offline" => QuantizationMode::Offline,
        "online" => QuantizationMode::Online,
        found => return Err(unsupported(fields, "quantization_mode", found, "offline, online")),
    };
    Ok(Quantization { linear_class, mode, linear_norm_eps })
}

/// A `BitNet` without `quantization_config` holds master weights.
const MASTER: Quantization = Quantization {
    linear_class: LinearClass::AutoBitLinear,
    mode: QuantizationMode::Online,
    linear_norm_eps: None,
};

/// Linear layers within the model are all ternary here; a file that keeps some of them dense
/// would be quantized against its will.
fn refuse_dense_layers(quantization: &Fields<'_>) -> Result<(), CheckpointError> {
    const NEVER_TERNARY: [&str; 3] = ["lm_head", "embed_tokens", "model.embed_tokens"];
    let kept = quantization.texts("modules_to_not_convert")?.unwrap_or_default();
    match kept.into_iter().find(|module| !NEVER_TERNARY.contains(module)) {
        None => Ok(()),
        Some(found) => Err(unsupported(
            quantization,
            "modules_to_not_convert",
            found,
            "lm_head, model.embed_tokens",
        )),
    }
}

fn parse_bos(
    fields: &Fields<'_>,
    generation: &GenerationDefaults,
    defaults: &Defaults,
) -> Result<Option<u32>, CheckpointError> {
    let default = (!fields.has("bos_token_id")).then_some(defaults.bos_token);
    Ok(generation.bos.or(first_token(fields)?).or(default))
}

fn parse_eos(
    fields: &Fields<'_>,
    generation: &GenerationDefaults,
    defaults: &Defaults,
) -> Result<Vec<u32>, CheckpointError> {
    let default = if fields.has("eos_token_id") { vec![] } else { vec![defaults.eos_token] };
    let listed = fields.tokens("eos_token_id")?.unwrap_or(default);
    Ok(generation.eos_tokens.clone().unwrap_or(listed))
}

fn unsupported(
    fields: &Fields<'_>,
    what: &'static str,
    found: &str,
    supported: &'static str,
) -> CheckpointError {
    let (file, found) = (fields.file().to_owned(), found.to_owned());
    CheckpointError::UnsupportedModel { file, what, found, supported }
}
