//! The embedded model: a folder in Hugging Face's layout as one `.safetensors` file.
//!
//! The folder's small files become strings of the header's `__metadata__`, under the keys
//! `setun.file/<name>`, JSON without white space; the tensors stay as they are. Any reader of safetensors still reads it,
//! and the same folder always gives the same bytes.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::shell::say;

/// Files of the folder that go along, if they are there.
const FILES: [&str; 5] = [
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "chat_template.jinja",
];

/// Files without which the bundle would be no model.
const REQUIRED: [&str; 2] = ["config.json", "tokenizer.json"];

/// Prefix of a bundled file's key in `__metadata__`.
const KEY_PREFIX: &str = "setun.file/";

/// Bytes that the length of the header takes.
const LENGTH_BYTES: usize = 8;

/// `cargo xtask embed-model`.
pub(crate) fn run(from: &Path, to: &Path) -> Result<()> {
    let mut files = Vec::new();
    for name in FILES {
        let path = from.join(name);
        if path.is_file() {
            files.push((name, fs::read_to_string(&path)?));
        } else if REQUIRED.contains(&name) {
            bail!("{} is missing", path.display());
        }
    }
    let model = from.join("model.safetensors");
    let model = fs::read(&model).with_context(|| format!("cannot read {}", model.display()))?;
    let bundled = bundle(&model, &files)?;
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(to, &bundled)?;
    say(&format!("{}: {} bytes, SHA-256 {}", to.display(), bundled.len(), sha256(&bundled)));
    Ok(())
}

/// SHA-256 in hexadecimal.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |mut digits, byte| {
        // Writing to a string cannot fail.
        let _ = write!(digits, "{byte:02x}");
        digits
    })
}

/// `model`, a safetensors file, with `files` in its metadata.
fn bundle(model: &[u8], files: &[(&str, String)]) -> Result<Vec<u8>> {
    let (header, tensors) = split(model)?;
    let mut header: Map<String, Value> =
        serde_json::from_slice(header).context("the header of model.safetensors is not JSON")?;
    let metadata = header.entry("__metadata__").or_insert_with(|| Value::Object(Map::new()));
    let metadata = metadata.as_object_mut().context("__metadata__ is not an object")?;
    for (name, text) in files {
        let text = if has_json(name) { compact(text)? } else { text.clone() };
        metadata.insert(format!("{KEY_PREFIX}{name}"), Value::String(text));
    }
    let mut header = serde_json::to_vec(&sorted(Value::Object(header)))?;
    // The tensors begin at a multiple of 8 bytes, as the format's own writer has it.
    header.resize(header.len().next_multiple_of(LENGTH_BYTES), b' ');

    let mut bundled = u64::try_from(header.len())?.to_le_bytes().to_vec();
    bundled.append(&mut header);
    bundled.extend_from_slice(tensors);
    Ok(bundled)
}

fn has_json(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|end| end == "json")
}

/// JSON without white space: pages download it, and read it before their first token.
fn compact(json: &str) -> Result<String> {
    let value: Value = serde_json::from_str(json)?;
    Ok(serde_json::to_string(&sorted(value))?)
}

/// `value` with the keys of every object in order, whatever order the parser keeps.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let map: BTreeMap<String, Value> =
                map.into_iter().map(|(key, value)| (key, sorted(value))).collect();
            Value::Object(map.into_iter().collect())
        }
        other => other,
    }
}

/// Header and tensors of a safetensors file.
fn split(file: &[u8]) -> Result<(&[u8], &[u8])> {
    let (length, rest) = file
        .split_first_chunk::<LENGTH_BYTES>()
        .context("model.safetensors is shorter than its own length field")?;
    let length = usize::try_from(u64::from_le_bytes(*length))?;
    ensure!(length <= rest.len(), "model.safetensors is cut off in its header");
    Ok(rest.split_at(length))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model() -> Vec<u8> {
        let header = r#"{"w":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}"#;
        let mut file = (header.len() as u64).to_le_bytes().to_vec();
        file.extend(header.as_bytes());
        file.extend([1, 2, 3, 4]);
        file
    }

    #[test]
    fn files_become_metadata_and_tensors_stay() {
        let files = [
            ("config.json", "{\n \"b\": [1, 2],\n \"a\": \"ü x\"\n}".to_owned()),
            ("chat_template.jinja", "{{ 1 }}\n".to_owned()),
        ];
        let bundled = bundle(&model(), &files).unwrap();
        let (header, tensors) = split(&bundled).unwrap();
        assert_eq!(tensors, [1, 2, 3, 4]);
        assert_eq!(header.len() % LENGTH_BYTES, 0);
        let header: Value = serde_json::from_slice(header).unwrap();
        let metadata = &header["__metadata__"];
        assert_eq!(metadata["setun.file/config.json"], r#"{"a":"ü x","b":[1,2]}"#);
        assert_eq!(metadata["setun.file/chat_template.jinja"], files[1].1.as_str());
        assert_eq!(header["w"]["data_offsets"], serde_json::json!([0, 4]));
        assert_eq!(bundled, bundle(&model(), &files).unwrap());
    }

    #[test]
    fn a_cut_off_model_is_refused() {
        assert!(bundle(&model()[..7], &[]).is_err());
        assert!(bundle(&model()[..20], &[]).is_err());
    }

    #[test]
    fn digests_are_the_published_ones() {
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256(b"abc"), expected);
    }
}
