//! A `tokenizer.json` and a `tokenizer_config.json`, as far as they matter here.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;

/// A `tokenizer.json`.
#[derive(Deserialize)]
pub(super) struct Source {
    #[serde(default)]
    pub(super) added_tokens: Vec<Added>,
    #[serde(default)]
    pub(super) normalizer: Value,
    #[serde(default)]
    pub(super) pre_tokenizer: Value,
    #[serde(default)]
    pub(super) post_processor: Value,
    pub(super) model: Model,
}

/// A token that is found before all else.
#[derive(Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "the fields are those of the file")]
pub(super) struct Added {
    pub(super) id: u32,
    pub(super) content: String,
    #[serde(default)]
    pub(super) special: bool,
    #[serde(default)]
    single_word: bool,
    #[serde(default)]
    lstrip: bool,
    #[serde(default)]
    rstrip: bool,
}

impl Added {
    /// Whether it is found other than by its spelling alone.
    pub(super) fn is_particular(&self) -> bool {
        self.single_word || self.lstrip || self.rstrip
    }
}

/// The model within.
#[derive(Deserialize)]
pub(super) struct Model {
    #[serde(rename = "type", default)]
    pub(super) kind: Option<String>,
    #[serde(default)]
    pub(super) unk_token: Option<String>,
    #[serde(default)]
    pub(super) continuing_subword_prefix: Option<String>,
    #[serde(default)]
    pub(super) end_of_word_suffix: Option<String>,
    #[serde(default)]
    pub(super) byte_fallback: bool,
    #[serde(default)]
    pub(super) ignore_merges: bool,
    #[serde(default)]
    pub(super) vocab: HashMap<String, u32>,
    #[serde(default)]
    pub(super) merges: Vec<Merge>,
}

/// A merge, in the form of today or in the first.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Merge {
    Pair(String, String),
    Text(String),
}

impl Merge {
    /// The two tokens.
    pub(super) fn halves(&self) -> Option<(&str, &str)> {
        match self {
            Self::Pair(left, right) => Some((left, right)),
            Self::Text(text) => text.split_once(' '),
        }
    }
}

/// A `tokenizer_config.json`.
#[derive(Default, Deserialize)]
pub(super) struct Config {
    #[serde(default)]
    pub(super) bos_token: Value,
    #[serde(default)]
    pub(super) eos_token: Value,
    #[serde(default)]
    pub(super) unk_token: Value,
    #[serde(default)]
    pub(super) pad_token: Value,
    #[serde(default)]
    chat_template: Value,
}

/// The spelling of a token, which may be an object around it.
pub(super) fn spelling(token: &Value) -> Option<&str> {
    token.as_str().or_else(|| token["content"].as_str())
}

impl Config {
    /// The template, of several the one called `default`.
    pub(super) fn chat_template(&self) -> Option<String> {
        let named = || self.chat_template.as_array()?.iter().find(|one| one["name"] == "default");
        let text = self.chat_template.as_str().or_else(|| named()?["template"].as_str());
        text.map(str::to_owned)
    }
}
