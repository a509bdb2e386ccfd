//! A model that a random one stands for: its configuration, tokenizer and chat template.

mod rotation;

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
pub(crate) use rotation::FILE as ROTATION;

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
        let mut fields = changed(config, changes)?;
        *config = serde_json::to_vec_pretty(&fields).unwrap_or_default();
        let generation = match files.get(GENERATION_CONFIG) {
            Some(bytes) => GenerationDefaults::parse(bytes)?,
            None => GenerationDefaults::default(),
        };
        let mut config = ModelConfig::parse(&files[CONFIG], &generation)?;
        check(&config)?;
        if rotation::is_rotated(&fields) {
            let missing = || CliError::Usage(format!("--like: `{name}` has no {ROTATION}"));
            let file = files.get_mut(ROTATION).ok_or_else(missing)?;
            config.hadamard = Some(rotation::fit(file, &mut fields, &config)?);
        } else {
            files.remove(ROTATION);
        }
        let mut text = serde_json::to_vec_pretty(&fields).unwrap_or_default();
        text.push(b'\n');
        files.insert(CONFIG.to_owned(), text);
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
    for change in changes {
        if !has(&fields, &change.field) && !FIELDS_TO_ADD.contains(&change.field.as_str()) {
            let (field, known) = (&change.field, FIELDS_TO_ADD.join(", "));
            return Err(CliError::Usage(format!(
                "--set: {CONFIG} has no field `{field}`; those that can be added are {known}"
            )));
        }
        set(&mut fields, change);
    }
    Ok(fields)
}

/// The object of a text model's fields in the configuration of a model of text and images.
const TEXT_CONFIG: &str = "text_config";

fn has(fields: &Map<String, Value>, field: &str) -> bool {
    let text = fields.get(TEXT_CONFIG).and_then(Value::as_object);
    fields.contains_key(field) || text.is_some_and(|text| text.contains_key(field))
}

/// Sets a field wherever it stands; one that stands nowhere is set for the text model.
fn set(fields: &mut Map<String, Value>, change: &Change) {
    let is_outside = fields.contains_key(&change.field);
    if let Some(text) = fields.get_mut(TEXT_CONFIG).and_then(Value::as_object_mut) {
        if !is_outside || text.contains_key(&change.field) {
            set_here(text, change);
        }
        if !is_outside {
            return;
        }
    }
    set_here(fields, change);
}

/// Fewer layers are the first ones, of the kinds that they have.
fn set_here(fields: &mut Map<String, Value>, Change { field, value }: &Change) {
    fields.insert(field.clone(), value.clone());
    let layers = value.as_u64().filter(|_| field == "num_hidden_layers");
    let types = fields.get_mut("layer_types").and_then(Value::as_array_mut);
    if let (Some(layers), Some(types)) = (layers, types) {
        types.truncate(usize::try_from(layers).unwrap_or(usize::MAX));
    }
}

/// Refuses storage that is not made.
fn check(config: &ModelConfig) -> Result<(), CliError> {
    let net = config.layers.iter().find_map(|layer| layer.delta_net());
    let widths = [
        ("hidden_size", config.hidden_size),
        ("intermediate_size", config.ffn_size),
        ("num_attention_heads × head_dim", config.query_width()),
        ("linear_num_value_heads × linear_value_head_dim", net.map_or(0, |net| net.value_width())),
        ("num_key_value_heads × head_dim", config.kv_width()),
        ("linear_num_value_heads", net.map_or(0, |net| net.value_heads)),
    ];
    let (what, multiple) = match config.quantization.mode {
        QuantizationMode::Offline => ("packed weights", FIELDS),
        QuantizationMode::Affine { group } => ("weights in groups", group),
        QuantizationMode::Online | QuantizationMode::FakeQuantized => return Ok(()),
    };
    // Those of a group are of columns, of which no matrix has as many as one has keys and values.
    let widths = widths.into_iter().take(if multiple == FIELDS { 6 } else { 4 });
    match widths.into_iter().find(|(_, width)| !width.is_multiple_of(multiple)) {
        None => Ok(()),
        Some((field, width)) => Err(CliError::Usage(format!(
            "--like: {field} of {what} must be a multiple of {multiple}, found {width}"
        ))),
    }
}

/// The type of floats that a configuration names, else `bf16`.
fn dtype(fields: &Map<String, Value>) -> Dtype {
    let text = fields.get(TEXT_CONFIG).and_then(Value::as_object).unwrap_or(fields);
    let keys = ["torch_dtype", "dtype"].iter();
    let named = keys.flat_map(|key| [fields.get(*key), text.get(*key)]).flatten().next();
    match named.and_then(Value::as_str) {
        Some("float32") => Dtype::F32,
        Some("float16") => Dtype::F16,
        _ => Dtype::Bf16,
    }
}
