//! The `hadamard.json` of an MLX pack, which describes how its weights are rotated.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};
use setun::checkpoint::config::{Hadamard, ModelConfig};

use crate::error::CliError;

/// The file of the rotation.
pub(crate) const FILE: &str = "hadamard.json";

/// The field of `config.json` that names it.
const FIELD: &str = "hadamard_config";

/// Beginning of the file's keys.
const PREFIX: &str = "prism.hadamard.";

/// Beginning of the pack's names of tensors.
const NAMESPACE: &str = "language_model.";

/// Whether a configuration is that of such a pack.
pub(super) fn is_rotated(fields: &Map<String, Value>) -> bool {
    fields.get(FIELD).is_some_and(Value::is_string)
}

/// The rotation of a stand-in that may have fewer layers: file and configuration lose the names of the others.
pub(super) fn fit(
    file: &mut Vec<u8>,
    fields: &mut Map<String, Value>,
    config: &ModelConfig,
) -> Result<Hadamard, CliError> {
    let layers = config.layers.len();
    let refused = |reason: &str| CliError::Usage(format!("--like: {FILE}: {reason}"));
    let mut keys: Map<String, Value> =
        serde_json::from_slice(file).map_err(|error| refused(&error.to_string()))?;
    if let Some(names) = keys.get_mut(&key("weight_names")).and_then(Value::as_array_mut) {
        names.retain(|name| is_kept(name.as_str().unwrap_or_default(), layers));
    }
    if let Some(modules) = fields.get_mut("modules").and_then(Value::as_array_mut) {
        modules.retain(|module| is_kept(module["path"].as_str().unwrap_or_default(), layers));
    }
    let hadamard = read(&keys).ok_or_else(|| refused("expected the keys of a rotation"))?;
    check_widths(&hadamard, config)?;
    *file = serde_json::to_vec_pretty(&keys).unwrap_or_default();
    file.push(b'\n');
    Ok(hadamard)
}

fn key(end: &str) -> String {
    format!("{PREFIX}{end}")
}

/// Whether a matrix is of no layer, or of one that the stand-in has.
fn is_kept(name: &str, layers: usize) -> bool {
    let name = name.strip_prefix(NAMESPACE).unwrap_or(name);
    let layer = name.strip_prefix("model.layers.").and_then(|rest| rest.split('.').next());
    layer.and_then(|layer| layer.parse::<usize>().ok()).is_none_or(|layer| layer < layers)
}

fn read(keys: &Map<String, Value>) -> Option<Hadamard> {
    let number = |value: &Value| value.as_f64();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
    let size = |value: &Value| number(value).map(|size| size.clamp(0.0, 1e9) as usize);
    let list =
        |end: &str| keys.get(&key(end)).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let mut values = list("sign_values").iter();
    let mut signs = BTreeMap::new();
    for width in list("sign_widths").iter().map(size) {
        let sign = |value: &Value| Some(if number(value)? < 0.0 { -1.0 } else { 1.0 });
        let own = values.by_ref().take(width?).map(sign).collect::<Option<Vec<f32>>>()?;
        (own.len() == width?).then_some(())?;
        signs.insert(width?, own);
    }
    let name = |name: &Value| {
        let name = name.as_str()?;
        Some(name.strip_prefix(NAMESPACE).unwrap_or(name).strip_suffix(".weight")?.to_owned())
    };
    let layers: BTreeSet<_> = list("weight_names").iter().map(name).collect::<Option<_>>()?;
    let block = size(keys.get(&key("block_size"))?).filter(|block| block.is_power_of_two())?;
    let embedding = !list("inverse_weight_names").is_empty();
    Some(Hadamard { block, signs, layers, embedding })
}

/// Other widths would need other signs.
fn check_widths(hadamard: &Hadamard, config: &ModelConfig) -> Result<(), CliError> {
    let net = config.layers.iter().find_map(|layer| layer.delta_net());
    let heads = net.map_or(config.hidden_size, |net| net.value_width());
    let widths = [config.hidden_size, config.ffn_size, config.query_width(), heads];
    let is_known = |width: &usize| {
        let has_signs = hadamard.signs.is_empty() || hadamard.signs.contains_key(width);
        has_signs && width.is_multiple_of(hadamard.block)
    };
    match widths.iter().find(|width| !is_known(width)) {
        None => Ok(()),
        Some(width) => Err(CliError::Usage(format!(
            "--like: {FILE} has no rotation of {width} columns; --set may change the number of layers \
             and the vocabulary of a rotated model"
        ))),
    }
}
