//! Files of every format, each target with its own way of reading them.

use std::ops::Range;

use serde_json::Value;
use setun_checkpoint::{GenerationDefaults, ModelConfig, Source, files};
use sha2::{Digest, Sha256};

use crate::{MemoryBound, run_bounded, trial, trial::Folder};

/// A matrix of one column has 32 bytes a row for the quarter of a byte that stores it, and for a
/// moment a matrix is there twice. Threads and tables of a few positions need no input.
const MEMORY: MemoryBound = MemoryBound { fixed: 4 << 20, each: 320 };

/// The configuration of the seeds in ONNX.
const SMALL: &[u8] =
    br#"{"model_type": "bitnet", "hidden_size": 16, "intermediate_size": 16, "vocab_size": 9,
    "num_attention_heads": 1, "num_key_value_heads": 1, "num_hidden_layers": 1,
    "max_position_embeddings": 16, "tie_word_embeddings": false}"#;

/// Configurations beside an ONNX file: those of the models that the seeds are exports of.
const CONFIGS: [&[u8]; 3] = [
    SMALL,
    include_bytes!("../../../tests/fixtures/golden/bitnet-h64/packed/config.json"),
    include_bytes!("../../../tests/fixtures/golden/llama-rmsnorm-bias/packed/config.json"),
];

/// Magic, version and length of the manifest of a `.setun` file, then the hash of these and the manifest.
const HASHED: Range<usize> = 0..16;
const HASH: Range<usize> = 16..48;

/// Reads a lone `.safetensors` file.
///
/// # Panics
///
/// As all functions here: if reading never ends, or takes more than its bound.
pub fn safetensors(bytes: &[u8]) {
    read_file("model.safetensors", bytes);
}

/// Reads a lone `.gguf` file.
///
/// # Panics
///
/// As [`safetensors`].
pub fn gguf(bytes: &[u8]) {
    read_file("model.gguf", bytes);
}

/// Reads a `.setun` file as it is, and with hashes that fit, or nothing behind them would be reached.
///
/// # Panics
///
/// As [`safetensors`].
pub fn setun(bytes: &[u8]) {
    const FILE: &str = "model.setun";
    read_file(FILE, bytes);
    if let Some(sealed) = sealed(bytes) {
        read_file(FILE, &sealed);
    }
}

/// Reads an ONNX file beside each configuration.
///
/// # Panics
///
/// As [`safetensors`].
pub fn onnx(bytes: &[u8]) {
    for config in CONFIGS {
        let folder = Folder::from([("model.onnx", bytes), (files::CONFIG, config)]);
        read(&Source::File("model.onnx".to_owned()), &folder);
    }
}

/// Reads a folder in Hugging Face's layout: `config.json`, `generation_config.json`, the index, each up
/// to a byte of zero and absent where it is empty, then the weights' file, which is every shard. The
/// index is the file of a pack's rotation as well.
///
/// # Panics
///
/// As [`safetensors`].
pub fn folder(bytes: &[u8]) {
    let parts: Vec<_> = bytes.splitn(4, |byte| *byte == 0).collect();
    let names = [files::CONFIG, files::GENERATION_CONFIG, files::INDEX];
    let mut folder: Folder<'_> = names.into_iter().zip(parts.iter().copied()).collect();
    folder.insert("hadamard.json", parts.get(2).copied().unwrap_or_default());
    folder.retain(|_, bytes| !bytes.is_empty());
    if let Some(weights) = parts.get(3) {
        let has_index = folder.contains_key(files::INDEX);
        folder.insert(if has_index { "a.safetensors" } else { files::WEIGHTS }, weights);
    }
    read(&Source::Folder, &folder);
}

/// Reads `config.json` and `generation_config.json`, both from the same bytes.
///
/// # Panics
///
/// As [`safetensors`].
pub fn config(bytes: &[u8]) {
    run_bounded(bytes.len(), MEMORY, || {
        let generation = GenerationDefaults::parse(bytes).unwrap_or_default();
        ModelConfig::parse(bytes, &generation).ok()
    });
}

/// Reads a file of any format up to its tensors' data, beside a configuration that not every format needs.
///
/// # Panics
///
/// As [`safetensors`].
pub fn headers(bytes: &[u8]) {
    let folder = Folder::from([("model", bytes), (files::CONFIG, SMALL)]);
    let length = folder.values().map(|bytes| bytes.len()).sum();
    let source = Source::File("model".to_owned());
    let _ = run_bounded(length, MEMORY, || trial::read_header(&source, &folder));
}

fn read_file(name: &str, bytes: &[u8]) {
    read(&Source::File(name.to_owned()), &Folder::from([(name, bytes)]));
}

fn read(source: &Source, folder: &Folder<'_>) {
    let bytes = folder.values().map(|bytes| bytes.len()).sum();
    // What is no checkpoint is an error; this one may be a sound one.
    let _ = run_bounded(bytes, MEMORY, || trial::read(source, folder));
}

/// The same with the hashes of its own chunks and manifest, if it has such places.
fn sealed(bytes: &[u8]) -> Option<Vec<u8>> {
    let length = usize::try_from(u64::from_le_bytes(*bytes.get(8..)?.first_chunk()?)).ok()?;
    let manifest = HASH.end..HASH.end.checked_add(length)?;
    let value: Value = serde_json::from_slice(bytes.get(manifest.clone())?).ok()?;
    let mut sealed = bytes.to_vec();
    for chunk in value["chunks"].as_array()? {
        let number = |key: &str| usize::try_from(chunk[key].as_u64()?).ok();
        let start = number("offset")?;
        let stored = bytes.get(start..start.checked_add(number("stored")?)?)?;
        let hash = hex(&Sha256::digest(stored));
        replace(&mut sealed[manifest.clone()], chunk["sha256"].as_str()?, &hash);
    }
    let hash = Sha256::new().chain_update(&sealed[HASHED]).chain_update(&sealed[manifest]);
    sealed[HASH].copy_from_slice(&hash.finalize());
    Some(sealed)
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8] = b"0123456789abcdef";
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
}

/// Replaces a text by another of the same length, where it stands first.
fn replace(bytes: &mut [u8], from: &str, to: &str) {
    let found = bytes.windows(from.len().max(1)).position(|window| window == from.as_bytes());
    if let Some(at) = found.filter(|_| from.len() == to.len()) {
        bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
    }
}
