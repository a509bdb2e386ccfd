//! Shared helpers: the fixtures.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;
use setun_text::{HfTokenizer, Tokenizer};

/// The folders with a tokenizer and its golden outputs.
pub(crate) const TOKENIZERS: [&str; 2] = ["tokenizer-llama3", "tokenizer-llama2"];

/// A path below the test data of the workspace.
pub(crate) fn fixture(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures").join(path)
}

/// A file of the test data.
pub(crate) fn read(path: &str) -> Vec<u8> {
    let path = fixture(path);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A JSON file of the test data.
pub(crate) fn json(path: &str) -> Value {
    serde_json::from_slice(&read(path)).expect("fixtures are valid JSON")
}

/// The tokenizer in one of the [`TOKENIZERS`] folders.
pub(crate) fn tokenizer(folder: &str) -> HfTokenizer {
    HfTokenizer::from_bytes(&read(&format!("golden/{folder}/tokenizer.json"))).expect("it is valid")
}

/// The same, shared.
pub(crate) fn shared_tokenizer(folder: &str) -> Arc<dyn Tokenizer> {
    Arc::new(tokenizer(folder))
}

/// Token ids of a golden file.
pub(crate) fn ids(value: &Value) -> Vec<u32> {
    serde_json::from_value(value.clone()).expect("a list of token ids")
}

/// The entries of a list in a golden file; a test over none would prove nothing.
pub(crate) fn entries(value: &Value) -> &Vec<Value> {
    value.as_array().filter(|list| !list.is_empty()).expect("a list with entries")
}
