//! Catalog of public ternary models, each with a short name.
//!
//! `catalog.json` is the only place that lists them: the command, the npm package and the table in
//! `docs/hub.md` are made from it. A test compares sizes and memory with each model's
//! configuration.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

const TABLE: &str = include_str!("../catalog.json");

static CATALOG: LazyLock<Vec<CatalogEntry>> =
    LazyLock::new(|| parse(TABLE).expect("a catalog that the tests have read"));

/// Positions that [`CatalogEntry::memory`] holds, of models with a longer context.
pub const MEMORY_CONTEXT: u64 = 4096;

/// A public model.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct CatalogEntry {
    /// Short name, which stands for the repository wherever a name is accepted.
    pub name: String,
    /// Name to show.
    pub title: String,
    /// Series that the model belongs to.
    pub family: String,
    /// Number of parameters.
    pub parameters: u64,
    /// `owner/name` on the hub.
    pub repository: String,
    /// File to pull, where the repository has several models.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub file: Option<String>,
    /// Format of the weights: `safetensors` or `gguf`.
    pub format: String,
    /// Bytes of the weights in the repository.
    pub bytes: u64,
    /// Peak memory on a CPU, in bytes, with a context of at most [`MEMORY_CONTEXT`] positions.
    pub memory: u64,
    /// Licence as the repository names it, or that of the model it was made from.
    pub licence: String,
    /// Most positions of a text, where a public source states them.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub context_length: Option<u64>,
    /// Format of the chat template, one of [`CHAT_TEMPLATES`], if the model has one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub chat_template: Option<String>,
    /// Sampling that the authors recommend, if they do.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub sampling: Option<RecommendedSampling>,
}

/// Formats of chat templates, by the names that llama.cpp and bitnet.cpp have for them. `qwen3.5` is `chatml` whose
/// answers begin within thinking.
pub const CHAT_TEMPLATES: [&str; 6] =
    ["bitnet", "chatml", "falcon-e", "falcon3", "llama3", "qwen3.5"];

/// Sampling options that a model's authors recommend; those of which they say nothing are absent.
///
/// They are in the model's `generation_config.json`, which a run takes its defaults from, except
/// where [`CatalogEntry::format`] is `gguf`: such a file has none.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct RecommendedSampling {
    /// Temperature.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub temperature: Option<f64>,
    /// Probability mass of nucleus sampling, above 0 and at most 1.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub top_p: Option<f64>,
    /// Number of tokens that are kept.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub top_k: Option<u32>,
}

impl CatalogEntry {
    /// The name that a short name stands for: `owner/name` or `owner/name:FILE`.
    #[must_use]
    pub fn source(&self) -> String {
        match &self.file {
            Some(file) => format!("{}:{file}", self.repository),
            None => self.repository.clone(),
        }
    }

    /// Whether name, title, family, repository, licence or chat template has each of some words, in
    /// any case. Each model with a chat template has the word `chat`.
    #[must_use]
    pub fn matches(&self, words: &[String]) -> bool {
        let Self { name, title, family, repository, licence, .. } = self;
        let template = self.chat_template.as_ref().map(|format| format!("chat {format}"));
        let template = template.unwrap_or_default();
        let text = [name, title, family, repository, licence, &template].map(String::as_str);
        let text = text.join("\n").to_lowercase();
        words.iter().all(|word| text.contains(&word.to_lowercase()))
    }
}

/// All models, those of a family together.
#[must_use]
pub fn catalog() -> &'static [CatalogEntry] {
    &CATALOG
}

/// The model with a short name.
#[must_use]
pub fn find(name: &str) -> Option<&'static CatalogEntry> {
    catalog().iter().find(|entry| entry.name == name)
}

fn parse(table: &str) -> Result<Vec<CatalogEntry>, serde_json::Error> {
    #[derive(Deserialize)]
    struct Table {
        models: Vec<CatalogEntry>,
    }
    Ok(serde_json::from_str::<Table>(table)?.models)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::model_name::{ModelName, Source};

    #[test]
    fn each_entry_has_a_name_of_its_own_and_names_a_repository() {
        let entries = parse(TABLE).expect("valid JSON");
        let names: BTreeSet<_> = entries.iter().map(|entry| &entry.name).collect();
        assert_eq!(names.len(), entries.len());
        assert!(entries.len() > 20, "{} models", entries.len());
        for entry in &entries {
            let name = ModelName::parse(&entry.name).expect("a name");
            assert_eq!(name.source, Source::Alias(entry.name.clone()), "{}", entry.name);
            let source = ModelName::parse(&entry.source()).expect("a repository");
            assert!(matches!(source.source, Source::Hub { host: None, .. }), "{}", entry.name);
            assert_eq!(source.file, entry.file);
            assert!(["safetensors", "gguf"].contains(&entry.format.as_str()), "{}", entry.name);
            // A GGUF repository can have several; a folder is taken whole.
            assert_eq!(entry.file.is_some(), entry.format == "gguf", "{}", entry.name);
            let template = entry.chat_template.as_deref();
            assert!(template.is_none_or(|it| CHAT_TEMPLATES.contains(&it)), "{}", entry.name);
        }
    }

    #[test]
    fn recommended_sampling_has_options_in_their_ranges() {
        let recommended = |entry: &'static CatalogEntry| Some((entry, entry.sampling?));
        let all: Vec<_> = catalog().iter().filter_map(recommended).collect();
        assert!(!all.is_empty());
        for (entry, RecommendedSampling { temperature, top_p, top_k }) in all {
            let name = &entry.name;
            assert!(temperature.is_some() || top_p.is_some() || top_k.is_some(), "{name}");
            assert!(temperature.is_none_or(|it| (0.0..=2.0).contains(&it)), "{name}");
            assert!(top_p.is_none_or(|it| it > 0.0 && it <= 1.0), "{name}");
            assert!(top_k.is_none_or(|it| it > 0), "{name}");
        }
        let sampling = |name| find(name).and_then(|entry| entry.sampling).expect("sampling");
        assert_eq!(sampling("bitnet-2b-4t").top_k, None);
        assert_eq!(sampling("ternary-bonsai-8b").top_k, Some(20));
    }

    #[test]
    fn an_unknown_field_is_refused() {
        let table = TABLE.replacen("\"title\"", "\"headline\"", 1);
        assert!(parse(&table).expect_err("refused").to_string().contains("headline"));
    }

    #[test]
    fn all_words_must_be_in_an_entry() {
        let found = |words: &[&str]| -> Vec<&str> {
            let words: Vec<_> = words.iter().map(ToString::to_string).collect();
            let entries = catalog().iter().filter(|entry| entry.matches(&words));
            entries.map(|entry| entry.name.as_str()).collect()
        };
        assert_eq!(found(&[]).len(), catalog().len());
        assert_eq!(found(&["Falcon3", "7B"]), ["falcon3-7b"]);
        assert_eq!(found(&["microsoft", "gguf"]), ["bitnet-2b-4t-gguf"]);
        assert_eq!(found(&["bonsai", "mit"]), [""; 0]);
        let chat = catalog().iter().filter(|entry| entry.chat_template.is_some());
        assert_eq!(found(&["chat"]).len(), chat.count());
        assert_eq!(found(&["chatml"]).len(), 3);
    }
}
