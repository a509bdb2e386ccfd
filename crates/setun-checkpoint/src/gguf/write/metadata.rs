//! The metadata of a model.

use setun_ops::HAS_RECURRENT;

use super::{
    super::{
        ALIGNMENT, MAGIC, config::ACTIVATION_GROUP_KEY, rope::Llama3, tokenizer::Vocabulary,
        vocabulary,
    },
    HYBRID, hadamard, hybrid,
    tensors::Entry,
    values::Values,
};
use crate::{
    config::{ModelConfig, RopeScaling},
    dtype::Dtype,
    error::CheckpointError,
    files::{self, Files},
    generation::GenerationDefaults,
    outline::Outline,
    warning::Warning,
    write::generation_config_json,
};

const VERSION: u32 = 3;

/// The beginning of a header, up to the tensors.
pub(super) struct Written {
    pub(super) bytes: Vec<u8>,
    pub(super) warnings: Vec<Warning>,
}

/// Writes magic, version, counts and metadata.
pub(super) fn write(
    outline: &Outline,
    architecture: &str,
    target: Dtype,
    llama3: Option<Llama3>,
    entries: &[Entry],
) -> Result<Written, CheckpointError> {
    let config = &outline.config;
    let mut values = Values::default();
    values.text("general.architecture", architecture);
    values.text("general.type", "model");
    values.u32("general.file_type", file_type(target));
    values.u32("general.quantization_version", 2);
    values.size("general.alignment", usize::try_from(ALIGNMENT).unwrap_or(0));
    write_config(&mut values, config, architecture, llama3)?;
    if HAS_RECURRENT {
        hadamard::write_keys(&mut values, config, architecture == HYBRID)?;
    }
    let warnings = write_tokenizer(&mut values, config, &outline.files)?;
    let group = config.quantization.activation_group;
    // Of other files a row is what readers take.
    if group.is_some() || config.head_norms || target.is_by_groups() {
        values.size(ACTIVATION_GROUP_KEY, group.unwrap_or(0));
    }
    values.text(vocabulary::GENERATION, &generation(config, &outline.files)?);
    let beside: usize = entries.iter().map(Entry::tensors).sum();
    let tensors = beside + usize::from(llama3.is_some());
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&(tensors as u64).to_le_bytes());
    bytes.extend_from_slice(&values.count.to_le_bytes());
    bytes.extend_from_slice(&values.bytes);
    Ok(Written { bytes, warnings })
}

/// llama.cpp's number of what most tensors are.
fn file_type(target: Dtype) -> u32 {
    match target {
        Dtype::Tq1_0 => 36,
        Dtype::Tq2_0 => 37,
        Dtype::Q2_0 | Dtype::Q2_0Wide => 41,
        Dtype::Pq2_0 => 142,
        Dtype::Ptq1_0 => 143,
        _ => 40,
    }
}

fn write_config(
    values: &mut Values,
    config: &ModelConfig,
    architecture: &str,
    llama3: Option<Llama3>,
) -> Result<(), CheckpointError> {
    let key = |key: &str| format!("{architecture}.{key}");
    values.size(&key("vocab_size"), config.vocab_size);
    values.size(&key("context_length"), config.context_length);
    values.size(&key("embedding_length"), config.hidden_size);
    values.size(&key("block_count"), config.layers.len());
    values.size(&key("feed_forward_length"), config.ffn_size);
    values.size(&key("attention.head_count"), config.heads);
    values.size(&key("attention.head_count_kv"), config.kv_heads);
    values.size(&key("attention.key_length"), config.head_dim);
    values.size(&key("attention.value_length"), config.head_dim);
    values.f32(&key("attention.layer_norm_rms_epsilon"), config.norm_eps);
    values.size(&key("rope.dimension_count"), config.rope.dimensions);
    #[expect(clippy::cast_possible_truncation, reason = "the exact number is written beside it")]
    let theta = config.rope.theta as f32;
    values.f32(&key("rope.freq_base"), theta);
    if f64::from(theta) != config.rope.theta {
        values.f64("setun.rope.freq_base", config.rope.theta);
    }
    if let RopeScaling::Yarn { factor, beta_fast, beta_slow, original_context, .. } =
        config.rope.scaling
    {
        values.text(&key("rope.scaling.type"), "yarn");
        values.f32(&key("rope.scaling.factor"), factor);
        values.size(&key("rope.scaling.original_context_length"), original_context);
        values.f32(&key("rope.scaling.yarn_beta_fast"), beta_fast);
        values.f32(&key("rope.scaling.yarn_beta_slow"), beta_slow);
    }
    for (key, number) in llama3.into_iter().flat_map(Llama3::entries) {
        values.f64(key, number);
    }
    if HAS_RECURRENT && architecture == HYBRID {
        hybrid::write_keys(values, config, key)?;
    }
    Ok(())
}

fn write_tokenizer(
    values: &mut Values,
    config: &ModelConfig,
    files: &Files,
) -> Result<Vec<Warning>, CheckpointError> {
    let (vocabulary, warnings) = match files.get(files::TOKENIZER) {
        Some(text) => {
            let settings = files.get(files::TOKENIZER_CONFIG);
            Vocabulary::from_files(text, settings, config.vocab_size)?
        }
        None => {
            (Vocabulary { model: vocabulary::NONE.to_owned(), ..Vocabulary::default() }, vec![])
        }
    };
    values.text("tokenizer.ggml.model", &vocabulary.model);
    if let Some(pre) = &vocabulary.pre {
        values.text("tokenizer.ggml.pre", pre);
    }
    values.texts("tokenizer.ggml.tokens", &vocabulary.tokens);
    values.f32s("tokenizer.ggml.scores", &vocabulary.scores);
    values.i32s("tokenizer.ggml.token_type", &vocabulary.token_types);
    values.texts("tokenizer.ggml.merges", &vocabulary.merges);
    let (bos, eos) = (config.bos_token, config.eos_tokens.first().copied());
    for (key, token) in [
        ("bos_token_id", vocabulary.bos.or(bos)),
        ("eos_token_id", vocabulary.eos.or(eos)),
        ("unknown_token_id", vocabulary.unknown),
        ("padding_token_id", vocabulary.padding),
        ("eot_token_id", vocabulary.end_of_turn),
    ] {
        if let Some(token) = token {
            values.u32(&format!("tokenizer.ggml.{key}"), token);
        }
    }
    for (key, flag) in [
        ("add_bos_token", vocabulary.add_bos),
        ("add_eos_token", vocabulary.add_eos),
        ("add_space_prefix", vocabulary.add_space_prefix),
        ("remove_extra_whitespaces", vocabulary.remove_extra_whitespaces),
    ] {
        if let Some(flag) = flag {
            values.flag(&format!("tokenizer.ggml.{key}"), flag);
        }
    }
    let template = template(files)?.or(vocabulary.chat_template);
    if let Some(template) = template {
        values.text("tokenizer.chat_template", &template);
    }
    let warning = |what: super::super::tokenizer::Warning| Warning {
        file: files::TOKENIZER.to_owned(),
        what: what.to_string(),
    };
    Ok(warnings.into_iter().map(warning).collect())
}

/// A chat template that is a file of its own, which goes before that of the tokenizer's settings.
fn template(files: &Files) -> Result<Option<String>, CheckpointError> {
    if let Some(text) = files.get(files::CHAT_TEMPLATE_JINJA) {
        return Ok(Some(String::from_utf8_lossy(text).into_owned()));
    }
    let Some(bytes) = files.get(files::CHAT_TEMPLATE_JSON) else {
        return Ok(None);
    };
    let value: serde_json::Value = crate::json::read(files::CHAT_TEMPLATE_JSON, bytes)?;
    Ok(value.get("chat_template").and_then(|text| text.as_str()).map(str::to_owned))
}

/// How to sample, and all tokens that end a text: no other key has room for several.
fn generation(config: &ModelConfig, files: &Files) -> Result<String, CheckpointError> {
    let mut defaults = match files.get(files::GENERATION_CONFIG) {
        Some(bytes) => GenerationDefaults::parse(bytes)?,
        None => GenerationDefaults::default(),
    };
    defaults.bos = defaults.bos.or(config.bos_token);
    defaults.eos_tokens = Some(config.eos_tokens.clone());
    generation_config_json(&defaults)
}
