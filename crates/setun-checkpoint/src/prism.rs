//! MLX's packs of rotated weights of the hybrid family (`prism_hadamard_qwen35`).
//!
//! `config.json` lists the modules and names a second file, which has the keys of the rotation. Beside a
//! matrix lie the signs of its inputs as a tensor. All three must say the same. A program that the
//! pack names is never run.

mod signs;

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::{
    config::{Hadamard, PRISM_MODEL_TYPE, TABLE},
    error::CheckpointError,
    files,
    gguf::{
        hadamard::{MLX, read_keys},
        metadata::{Metadata, Value as Stored},
    },
    json::{self, Fields},
    readers::HeaderContents,
    tensor::TensorInfo,
    write::config_json,
};

pub(crate) use signs::SignsReader;

/// A file of keys that has been read, and what `config.json` says of the modules.
#[derive(Debug)]
pub(crate) struct Pack {
    keys: Metadata,
    modules: Option<Vec<Module>>,
}

/// An entry of `modules`.
#[derive(Debug)]
struct Module {
    /// Our name of the layer or table.
    path: String,
    /// Columns of a block of its rotation, 0 without one.
    block: usize,
    is_table: bool,
}

/// Most columns of a block, and longest list of modules.
const LIMIT: usize = 1 << 20;

/// Name of the file of keys, if the configuration is that of such a pack.
pub(crate) fn file_of_keys(config: &[u8]) -> Result<Option<String>, CheckpointError> {
    const KEY: &str = "hadamard_config";
    const EXPECTED: &str = "hadamard.json"; // which downloads fetch
    let map: Map<String, Value> = json::read(files::CONFIG, config)?;
    let fields = Fields::new(files::CONFIG, &map);
    if fields.text("model_type")? != Some(PRISM_MODEL_TYPE) {
        return Ok(None);
    }
    let name = fields.text(KEY)?.ok_or_else(|| fields.absent(KEY, EXPECTED))?;
    if name != EXPECTED {
        return Err(fields.error(KEY, EXPECTED, name));
    }
    Ok(Some(name.to_owned()))
}

impl Pack {
    /// Of a configuration and the file of keys that it names.
    pub(crate) fn parse(config: &[u8], file: &str, bytes: &[u8]) -> Result<Self, CheckpointError> {
        const LAYOUT: &str = "gdn_activation_layout";
        let map: Map<String, Value> = json::read(files::CONFIG, config)?;
        let fields = Fields::new(files::CONFIG, &map);
        let version = fields.size("schema_version", LIMIT)?;
        if let Some(found) = version.filter(|version| ![1, 2].contains(version)) {
            return Err(fields.error("schema_version", "1 or 2", &found.to_string()));
        }
        if let Some(found) = fields.text(LAYOUT)?.filter(|layout| *layout != "grouped") {
            return Err(fields.error(LAYOUT, "grouped", found));
        }
        let keys: Map<String, Value> = json::read(file, bytes)?;
        let values = keys.into_iter().map(|(key, value)| (key, stored(value))).collect();
        let keys = Metadata { file: file.to_owned(), values };
        Ok(Self { keys, modules: modules(&fields)? })
    }

    /// Puts the rotation into the configuration, and returns it. The tensors have our names by now.
    pub(crate) fn apply(self, found: &mut HeaderContents) -> Result<Hadamard, CheckpointError> {
        let hadamard = read_keys(&self.keys, &found.tensors, MLX)?.hadamard;
        if let Some(modules) = &self.modules {
            check_modules(modules, &hadamard)?;
        }
        signs::check_shapes(&found.tensors, &hadamard)?;
        if let Some(config) = &mut found.config {
            config.hadamard = Some(hadamard.clone());
            found.files.insert(files::CONFIG, config_json(config)?.into_bytes());
        }
        Ok(hadamard)
    }
}

/// A value of the file as GGUF would hold it; whole numbers are often written as floats.
fn stored(value: Value) -> Stored {
    let integer = |value: &Value| {
        let float = value.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < 1e9);
        #[expect(clippy::cast_possible_truncation, reason = "a whole number below 1e9")]
        float.map(|float| float as i64)
    };
    match value {
        Value::Bool(flag) => Stored::Flag(flag),
        Value::String(text) => Stored::Text(text),
        Value::Number(_) => {
            integer(&value).map_or(Stored::Other, |number| Stored::Integer(number.into()))
        }
        Value::Array(list) if list.iter().all(Value::is_string) => {
            let text = |value: Value| value.as_str().unwrap_or_default().to_owned();
            Stored::Texts(list.into_iter().map(text).collect())
        }
        Value::Array(list) => {
            let integers: Option<Vec<_>> = list.iter().map(integer).collect();
            integers.map_or(Stored::Other, Stored::Integers)
        }
        Value::Null | Value::Object(_) => Stored::Other,
    }
}

const MODULES: &str = "modules";

fn modules(fields: &Fields<'_>) -> Result<Option<Vec<Module>>, CheckpointError> {
    let module = |value: &Value| {
        let path = value.get("path")?.as_str()?.to_owned();
        let block = usize::try_from(value.get("block")?.as_u64()?).ok()?;
        Some(Module { path, block, is_table: value.get("embedding")?.as_bool()? })
    };
    fields.get(MODULES, "a list of objects with path, block and embedding", |value| {
        value.as_array()?.iter().map(module).collect()
    })
}

/// The modules are rotated as the keys say, and no others.
fn check_modules(modules: &[Module], hadamard: &Hadamard) -> Result<(), CheckpointError> {
    let error = |expected: &str, found: &str| {
        Err(CheckpointError::field(files::CONFIG, MODULES, expected, found))
    };
    let mut rotated = BTreeSet::new();
    for module in modules.iter().filter(|module| module.block > 0) {
        let path = module.path.as_str();
        if module.block != hadamard.block {
            let expected = format!("blocks of {}, as the rotation has", hadamard.block);
            return error(&expected, &format!("{} of `{path}`", module.block));
        }
        if module.is_table != (path == TABLE) || !rotated.insert(path) {
            return error("each matrix once, and no other table than the embedding", path);
        }
    }
    let layers = hadamard.layers.iter().map(String::as_str);
    let expected: BTreeSet<_> = layers.chain(hadamard.embedding.then_some(TABLE)).collect();
    match rotated.symmetric_difference(&expected).next() {
        None => Ok(()),
        Some(other) => error("the modules that the rotation names", other),
    }
}

/// Whether a tensor holds the signs of a matrix's inputs.
fn is_signs(info: &TensorInfo) -> bool {
    info.name.ends_with(signs::END)
}
