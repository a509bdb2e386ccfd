//! The forms of `tokenizer.json` and `tokenizer_config.json`.

use std::borrow::Cow;

use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use super::check::Checked;
use crate::{CheckpointError, files};

/// The whole file.
#[derive(Serialize)]
pub(super) struct Tokenizer<'a> {
    version: &'static str,
    truncation: Option<()>,
    padding: Option<()>,
    added_tokens: Vec<AddedToken<'a>>,
    #[serde(flatten)]
    stages: Stages,
    model: Model<'a>,
}

/// The stages before and after the model.
#[derive(Serialize)]
pub(super) struct Stages {
    pub(super) normalizer: Value,
    pub(super) pre_tokenizer: Value,
    pub(super) post_processor: Value,
    pub(super) decoder: Value,
}

impl<'a> Tokenizer<'a> {
    pub(super) fn new(added_tokens: Vec<AddedToken<'a>>, stages: Stages, model: Model<'a>) -> Self {
        let (truncation, padding) = (None, None);
        Self { version: "1.0", truncation, padding, added_tokens, stages, model }
    }
}

/// A token that is found in a text before all else.
#[derive(Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "the fields are those of the file")]
pub(super) struct AddedToken<'a> {
    id: u32,
    content: Cow<'a, str>,
    single_word: bool,
    lstrip: bool,
    rstrip: bool,
    normalized: bool,
    special: bool,
}

impl<'a> AddedToken<'a> {
    pub(super) fn new(id: u32, content: Cow<'a, str>, special: bool) -> Self {
        let (single_word, lstrip, rstrip, normalized) = (false, false, false, false);
        Self { id, content, single_word, lstrip, rstrip, normalized, special }
    }
}

/// Byte pair encoding.
#[derive(Serialize)]
pub(super) struct Model<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    dropout: Option<()>,
    pub(super) unk_token: Option<Cow<'a, str>>,
    continuing_subword_prefix: Option<()>,
    end_of_word_suffix: Option<()>,
    pub(super) fuse_unk: bool,
    pub(super) byte_fallback: bool,
    pub(super) ignore_merges: bool,
    vocab: Vocab<'a>,
    merges: Vec<(&'a str, &'a str)>,
}

impl<'a> Model<'a> {
    /// A model of the tokens below `len`, without fall-backs.
    pub(super) fn new(
        checked: &'a Checked<'a>,
        len: usize,
        merges: Vec<(&'a str, &'a str)>,
    ) -> Self {
        Self {
            kind: "BPE",
            dropout: None,
            unk_token: None,
            continuing_subword_prefix: None,
            end_of_word_suffix: None,
            fuse_unk: false,
            byte_fallback: false,
            ignore_merges: false,
            vocab: Vocab { checked, len },
            merges,
        }
    }
}

/// Tokens to ids, written without a copy.
struct Vocab<'a> {
    checked: &'a Checked<'a>,
    len: usize,
}

impl Serialize for Vocab<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let tokens = self.checked.all().take(self.len);
        serializer.collect_map(tokens.map(|(id, _)| (self.checked.spelling(id), id)))
    }
}

/// What puts BOS before a text and EOS behind it; nothing if neither is wanted.
pub(super) fn template(
    checked: &Checked<'_>,
    bos_by_default: bool,
) -> Result<Option<Value>, CheckpointError> {
    let vocabulary = checked.vocabulary;
    let wanted = |field, wanted: Option<bool>, default: bool, id: Option<u32>| {
        if wanted == Some(true) && id.is_none() {
            let (found, tokens) = ("missing, though it is to be added".to_owned(), checked.len());
            return Err(CheckpointError::TokenId { field, found, tokens });
        }
        Ok(id.filter(|_| wanted.unwrap_or(default)))
    };
    let (bos, eos) = (checked.special.bos, checked.special.eos);
    let bos = wanted("tokenizer.ggml.bos_token_id", vocabulary.add_bos, bos_by_default, bos)?;
    let eos = wanted("tokenizer.ggml.eos_token_id", vocabulary.add_eos, false, eos)?;
    if bos.is_none() && eos.is_none() {
        return Ok(None);
    }
    let special =
        |id: u32, text| json!({"SpecialToken": {"id": checked.spelling(id), "type_id": text}});
    let text = |name: &str, text: u32| {
        let sequence = json!({"Sequence": {"id": name, "type_id": text}});
        let before = bos.map(|id| special(id, text));
        before.into_iter().chain([sequence]).chain(eos.map(|id| special(id, text)))
    };
    let tokens = bos.into_iter().chain(eos).map(|id| {
        let token = checked.spelling(id);
        (token.to_string(), json!({"id": token, "ids": [id], "tokens": [token]}))
    });
    Ok(Some(json!({
        "type": "TemplateProcessing",
        "single": text("A", 0).collect::<Vec<_>>(),
        "pair": text("A", 0).chain(text("B", 1)).collect::<Vec<_>>(),
        "special_tokens": tokens.collect::<serde_json::Map<_, _>>(),
    })))
}

/// The bytes of `tokenizer_config.json`.
pub(super) fn config(checked: &Checked<'_>) -> Result<Vec<u8>, CheckpointError> {
    let special = checked.special;
    let mut config = Map::new();
    for (name, id) in [
        ("bos_token", special.bos),
        ("eos_token", special.eos),
        ("unk_token", special.unknown),
        ("pad_token", special.padding),
    ] {
        if let Some(id) = id {
            config.insert(name.to_owned(), checked.spelling(id).into());
        }
    }
    for (name, value) in [
        ("add_bos_token", checked.vocabulary.add_bos),
        ("add_eos_token", checked.vocabulary.add_eos),
    ] {
        config.extend(value.map(|value| (name.to_owned(), value.into())));
    }
    config.insert("clean_up_tokenization_spaces".to_owned(), Value::Bool(false));
    config.insert("tokenizer_class".to_owned(), "PreTrainedTokenizerFast".into());
    let template = checked.vocabulary.chat_template.clone();
    config.extend(template.map(|template| ("chat_template".to_owned(), template.into())));
    crate::json::write(files::TOKENIZER_CONFIG, &config)
}
