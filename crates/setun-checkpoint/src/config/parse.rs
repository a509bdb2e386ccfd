//! Reads `config.json`.

use setun_ops::{op::Activation, ternary::MAX_COLUMNS};

use super::{
    MAX_CONTEXT, MAX_HEAD_DIM, MAX_VOCAB, ModelConfig, NORMS_INCLUDE_ONE,
    family::{self, Defaults, Family},
    hadamard, layers,
    quantization::{self, parse_eps},
    rope, unsupported,
};
use crate::{
    error::CheckpointError,
    files,
    generation::{GenerationDefaults, first_token},
    json::{self, Fields},
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
        let map = family::text_fields(json::read(files::CONFIG, bytes)?)?;
        let fields = Fields::new(files::CONFIG, &map);
        let (architecture, family) = family::parse(&fields)?;
        family::refuse_variants(&fields, family)?;
        let is_hybrid = family == Family::Qwen35;
        let defaults = family.defaults();
        let size = |key, limit, default| Ok(fields.size(key, limit)?.unwrap_or(default));
        let flag = |key| Ok(fields.flag(key)?.unwrap_or(false));
        let hidden_size = size("hidden_size", MAX_COLUMNS, defaults.hidden_size)?;
        let heads = size("num_attention_heads", MAX_COLUMNS, defaults.heads)?;
        let head_dim = parse_head_dim(&fields, family, hidden_size, heads)?;
        Ok(Self {
            architecture,
            vocab_size: size("vocab_size", MAX_VOCAB, defaults.vocab_size)?,
            hidden_size,
            ffn_size: size("intermediate_size", MAX_COLUMNS, defaults.ffn_size)?,
            layers: layers::parse(&fields, is_hybrid, defaults.layers)?,
            heads,
            kv_heads: parse_kv_heads(&fields, heads, &defaults)?,
            head_dim,
            context_length: size("max_position_embeddings", MAX_CONTEXT, defaults.context_length)?,
            activation: parse_activation(&fields, &defaults)?,
            norm_eps: parse_eps(&fields)?.unwrap_or(defaults.norm_eps),
            rope: rope::parse(&fields, family, head_dim)?,
            sub_norms: family.is_bitnet(),
            head_norms: is_hybrid || family == Family::Qwen3,
            attention_gate: is_hybrid,
            unit_norms: is_hybrid && !flag(NORMS_INCLUDE_ONE)?,
            tied_head: flag("tie_word_embeddings")?,
            attention_bias: flag("attention_bias")?,
            mlp_bias: flag("mlp_bias")?,
            quantization: quantization::parse(&fields, family)?,
            hadamard: hadamard::parse(&fields)?,
            bos_token: parse_bos(&fields, generation, &defaults)?,
            eos_tokens: parse_eos(&fields, generation, &defaults)?,
        })
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
    let absent = if fields.has(KEY) { None } else { family.defaults().head_dim };
    let head_dim = match fields.size(KEY, MAX_COLUMNS)?.or(absent) {
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
    } else if head_dim > MAX_HEAD_DIM {
        format!("at most {MAX_HEAD_DIM}")
    } else if width > MAX_COLUMNS {
        format!("at most {MAX_COLUMNS} columns in {heads} heads")
    } else if family.is_bitnet() && width != hidden_size {
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

fn parse_bos(
    fields: &Fields<'_>,
    generation: &GenerationDefaults,
    defaults: &Defaults,
) -> Result<Option<u32>, CheckpointError> {
    let default = if fields.has("bos_token_id") { None } else { defaults.bos_token };
    Ok(generation.bos.or(first_token(fields)?).or(default))
}

fn parse_eos(
    fields: &Fields<'_>,
    generation: &GenerationDefaults,
    defaults: &Defaults,
) -> Result<Vec<u32>, CheckpointError> {
    let default = if fields.has("eos_token_id") { None } else { defaults.eos_token };
    let listed = fields.tokens("eos_token_id")?.unwrap_or(default.into_iter().collect());
    Ok(generation.eos_tokens.clone().unwrap_or(listed))
}
