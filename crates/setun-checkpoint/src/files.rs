//! The small files beside the weights.

use std::collections::BTreeMap;

/// Configuration of the model.
pub const CONFIG: &str = "config.json";
/// Sampling parameters and end tokens.
pub const GENERATION_CONFIG: &str = "generation_config.json";
/// The tokenizer.
pub const TOKENIZER: &str = "tokenizer.json";
/// Settings of the tokenizer, often with the chat template.
pub const TOKENIZER_CONFIG: &str = "tokenizer_config.json";
/// The chat template as a file of its own.
pub const CHAT_TEMPLATE_JINJA: &str = "chat_template.jinja";
/// The chat template in a JSON file of its own.
pub const CHAT_TEMPLATE_JSON: &str = "chat_template.json";
/// The weights, where they are one file.
pub const WEIGHTS: &str = "model.safetensors";
/// The list of the weights' files, where they are several.
pub const INDEX: &str = "model.safetensors.index.json";
/// The weights as `torch.save` writes them, which are never read.
pub(crate) const PICKLE: &str = "pytorch_model.bin";

/// The files of a folder in Hugging Face's layout that decide what the weights in it are.
pub const IN_FOLDER: [&str; 7] = [
    CONFIG,
    GENERATION_CONFIG,
    TOKENIZER,
    TOKENIZER_CONFIG,
    CHAT_TEMPLATE_JINJA,
    CHAT_TEMPLATE_JSON,
    INDEX,
];

/// Prefix of the keys under which a lone file carries the others in its metadata.
pub const EMBEDDED_PREFIX: &str = "setun.file/";

/// The files beside the weights, in the order in which they are requested, and whether a model can
/// do without.
pub(crate) const BESIDE: [(&str, bool); 6] = [
    (CONFIG, true),
    (GENERATION_CONFIG, false),
    (TOKENIZER, false),
    (TOKENIZER_CONFIG, false),
    (CHAT_TEMPLATE_JINJA, false),
    (CHAT_TEMPLATE_JSON, false),
];

/// The files that were found beside the weights, or within them, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Files(BTreeMap<String, Vec<u8>>);

impl Files {
    /// The bytes of a file, by one of this module's names.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.0.get(name).map(Vec::as_slice)
    }

    /// Names and bytes of all that were found.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.0.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice()))
    }

    /// Puts a file in the place of what was there.
    pub fn insert(&mut self, name: &str, bytes: Vec<u8>) {
        self.0.insert(name.to_owned(), bytes);
    }
}
