//! The tokenizer among the metadata, and the tokens that begin and end a text.

use std::sync::Arc;

use super::{
    config::Tokens,
    metadata::Metadata,
    tokenizer::{Converted, Vocabulary},
};
use crate::{
    error::CheckpointError, files, generation::GenerationDefaults, readers::HeaderContents,
    warning::Warning, write::generation_config_json,
};

/// `tokenizer.ggml.model` of a file without a tokenizer.
pub(super) const NONE: &str = "no_vocab";

/// The whole text of `generation_config.json`, where this library wrote the file.
pub(super) const GENERATION: &str = "setun.generation_config";

/// Takes the tokenizer out of the metadata.
pub(super) fn take(metadata: &mut Metadata) -> Result<Vocabulary, CheckpointError> {
    let text = |metadata: &Metadata, key| Ok(metadata.text(key)?.map(str::to_owned));
    let token_types = metadata.integers("tokenizer.ggml.token_type")?.iter();
    let narrow = |kind: &i64| i32::try_from(*kind).unwrap_or(0);
    Ok(Vocabulary {
        architecture: text(metadata, "general.architecture")?.unwrap_or_default(),
        model: text(metadata, "tokenizer.ggml.model")?.unwrap_or_else(|| NONE.to_owned()),
        pre: text(metadata, "tokenizer.ggml.pre")?,
        token_types: token_types.map(narrow).collect(),
        bos: metadata.token("tokenizer.ggml.bos_token_id")?,
        eos: metadata.token("tokenizer.ggml.eos_token_id")?,
        unknown: metadata.token("tokenizer.ggml.unknown_token_id")?,
        padding: metadata.token("tokenizer.ggml.padding_token_id")?,
        end_of_turn: metadata.token("tokenizer.ggml.eot_token_id")?,
        add_bos: metadata.flag("tokenizer.ggml.add_bos_token")?,
        add_eos: metadata.flag("tokenizer.ggml.add_eos_token")?,
        add_space_prefix: metadata.flag("tokenizer.ggml.add_space_prefix")?,
        remove_extra_whitespaces: metadata.flag("tokenizer.ggml.remove_extra_whitespaces")?,
        chat_template: text(metadata, "tokenizer.chat_template")?,
        tokens: metadata.take_texts("tokenizer.ggml.tokens")?,
        scores: metadata.take_floats("tokenizer.ggml.scores")?,
        merges: metadata.take_texts("tokenizer.ggml.merges")?,
    })
}

/// Keeps the files and warnings of a tokenizer; its end tokens.
fn keep(converted: Converted, file: &str, found: &mut HeaderContents) -> Vec<u32> {
    let Converted { files, end_tokens, warnings } = converted;
    for (name, bytes) in files.iter() {
        found.files.insert(name, bytes.to_vec());
    }
    let warning = |what: String| Warning { file: file.to_owned(), what };
    found.warnings.extend(warnings.into_iter().map(|what| warning(what.to_string())));
    end_tokens
}

/// Writes the files of the tokenizer, of at most `vocab_size` tokens, and of how to sample. A
/// tokenizer that cannot be written is no error yet: token ids do without it.
pub(super) fn write(
    vocabulary: &Vocabulary,
    metadata: &Metadata,
    vocab_size: usize,
    found: &mut HeaderContents,
) -> Result<Tokens, CheckpointError> {
    let mut tokens = Tokens { first: vocabulary.bos, last: vocabulary.eos.into_iter().collect() };
    if vocabulary.model != NONE {
        check_count(vocabulary, metadata, vocab_size)?;
        match vocabulary.to_files() {
            Ok(converted) => tokens.last = keep(converted, &metadata.file, found),
            Err(error) => found.tokenizer_error = Some(Arc::new(error)),
        }
    }
    let generation = match metadata.text(GENERATION)? {
        Some(text) => text.to_owned(),
        None => generation_config_json(&GenerationDefaults {
            bos: tokens.first,
            eos_tokens: Some(tokens.last.clone()),
            ..GenerationDefaults::default()
        })?,
    };
    found.files.insert(files::GENERATION_CONFIG, generation.into_bytes());
    Ok(tokens)
}

/// A token without a row of the embedding cannot be computed.
fn check_count(
    vocabulary: &Vocabulary,
    metadata: &Metadata,
    vocab_size: usize,
) -> Result<(), CheckpointError> {
    const KEY: &str = "tokenizer.ggml.tokens";
    if vocabulary.tokens.len() <= vocab_size {
        return Ok(());
    }
    let expected = format!("at most {vocab_size} tokens, the rows of the embedding");
    Err(metadata.error(KEY, &expected, &format!("a list of {} texts", vocabulary.tokens.len())))
}
