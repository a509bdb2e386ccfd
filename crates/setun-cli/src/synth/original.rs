//! A model that a random one stands for: its configuration, tokenizer and chat template.

use std::{collections::BTreeMap, str::FromStr};

use serde_json::{Map, Value};
use setun::checkpoint::{
    Dtype,
    config::{ModelConfig, QuantizationMode},
    files::{CONFIG, GENERATION_CONFIG},
    generation::GenerationDefaults,
};
use setun::text::without_mark;

use crate::error::CliError;

/// Rows that share a byte of packed codes.
pub(super) const FIELDS: usize = 4;

/// Fields that may be set although the configuration has none of them.
const FIELDS_TO_ADD: [&str; 12] = [
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "vocab_size",
    "max_position_embeddings",
    "bos_token_id",
    "eos_token_id",
    "tie_word_embeddings",
    "torch_dtype",
];

/// A field of `config.json` and its new value, written `FIELD=VALUE`. A value that is no JSON is a
/// string.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    field: String,
    value: Value,
}

impl FromStr for Change {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let expected = "expected FIELD=VALUE, such as num_hidden_layers=2";
        let (field, value) = text.split_once('=').ok_or(expected)?;
        if field.is_empty() || value.is_empty() {
            return Err(expected);
        }
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
        Ok(Self { field: field.to_owned(), value })
    }
}

/// What a stand-in has of a model.
#[derive(Debug)]
pub(crate) struct Original {
    pub(super) name: String,
    pub(super) config: ModelConfig,
    /// Type of floats.
    pub(super) dtype: Dtype,
    /// The small files, with the changed configuration.
    pub(super) files: BTreeMap<String, Vec<u8>>,
}

impl Original {
    /// What a stand-in has of a model's files, with a changed configuration.
    ///
    /// # Errors
    ///
    /// If there is no `config.json`, a file cannot be read, a field is unknown, or the changed
    /// configuration is none that random weights are made for.
    pub(crate) fn new(
        name: String,
        mut files: BTreeMap<String, Vec<u8>>,
        changes: &[Change],
    ) -> Result<Self, CliError> {
        let Some(config) = files.get_mut(CONFIG) else {
            return Err(CliError::Usage(format!("--like: `{name}` has no {CONFIG}")));
        };
        let fields = changed(config, changes)?;
        *config = serde_json::to_vec_pretty(&fields).unwrap_or_default();
        config.push(b'\n');
        let generation = match files.get(GENERATION_CONFIG) {
            Some(bytes) => GenerationDefaults::parse(bytes)?,
            None => GenerationDefaults::default(),
        };
        let config = ModelConfig::parse(&files[CONFIG], &generation)?;
        check(&config)?;
        Ok(Self { name, config, dtype: dtype(&fields), files })
    }
}

/// The fields of a configuration after some changes.
fn changed(config: &[u8], changes: &[Change]) -> Result<Map<String, Value>, CliError> {
    // For its errors, which say where the text is wrong.
    let default = GenerationDefaults::default();
    ModelConfig::parse(config, &default)?;
    let mut fields: Map<String, Value> =
        serde_json::from_slice(without_mark(config)).unwrap_or_default();
    for Change { field, value } in changes {
        if !fields.contains_key(field) && !FIELDS_TO_ADD.contains(&field.as_str()) {
            let known = FIELDS_TO_ADD.join(", ");
            return Err(CliError::Usage(format!(
                "--set: {CONFIG} has no field `{field}`; those that can be added are {known}"
            )));
        }
        fields.insert(field.clone(), value.clone());
    }
    Ok(fields)
}

/// Refuses storage that is not made.
fn check(config: &ModelConfig) -> Result<(), CliError> {
    let widths = [
        ("hidden_size", config.hidden_size),
        ("intermediate_size", config.ffn_size),
        ("num_attention_heads × head_dim", config.query_width()),
        ("num_key_value_heads × head_dim", config.kv_width()),
    ];
    let (what, multiple) = match config.quantization.mode {
        QuantizationMode::Offline => ("packed weights", FIELDS),
        QuantizationMode::Affine { group } => ("weights in groups", group),
        QuantizationMode::Online | QuantizationMode::FakeQuantized => return Ok(()),
    };
    // Those of a group are of columns, of which no matrix has as many as one has keys and values.
    let widths = widths.into_iter().take(if multiple == FIELDS { 4 } else { 3 });
    match widths.into_iter().find(|(_, width)| !width.is_multiple_of(multiple)) {
        None => Ok(()),
        Some((field, width)) => Err(CliError::Usage(format!(
            "--like: {field} of {what} must be a multiple of {multiple}, found {width}"
        ))),
    }
}

/// The type of floats that a configuration names, else `bf16`.
fn dtype(fields: &Map<String, Value>) -> Dtype {
    let named = fields.get("torch_dtype").or_else(|| fields.get("dtype"));
    match named.and_then(Value::as_str) {
        Some("float32") => Dtype::F32,
        Some("float16") => Dtype::F16,
        _ => Dtype::Bf16,
    }
}
