//! A vocabulary from a `tokenizer.json`: what its parts are called in GGUF.

mod score;
mod split;
mod template;

use super::{
    BYTE_LEVEL, SENTENCE_PIECE, Vocabulary, Warning,
    check::Checked,
    sentence_piece::SPACE,
    source::{Config, Merge, Source, spelling},
    token_type,
};
use crate::{CheckpointError, files, json};

/// Tokens that end a turn, the most usual first.
const ENDS_OF_TURN: [&str; 4] = ["<|eot_id|>", "<|im_end|>", "<end_of_turn>", "<|end|>"];

pub(super) fn vocabulary(
    tokenizer: &[u8],
    config: Option<&[u8]>,
    vocab_size: usize,
) -> Result<(Vocabulary, Vec<Warning>), CheckpointError> {
    let source: Source = json::read(files::TOKENIZER, tokenizer)?;
    let config: Config = match config {
        Some(bytes) => json::read(files::TOKENIZER_CONFIG, bytes)?,
        None => Config::default(),
    };
    let mut warnings = Vec::new();
    check_model(&source)?;
    let steps = split::steps(&source.pre_tokenizer)?;
    let is_byte_level = steps.contains(&split::SplitStep::ByteLevel);
    let mut vocabulary = Vocabulary {
        tokens: tokens(&source, vocab_size)?,
        chat_template: config.chat_template(),
        ..Vocabulary::default()
    };
    vocabulary.token_types = token_types(&source, &vocabulary.tokens);
    special_ids(&mut vocabulary, &source, &config)?;
    if is_byte_level {
        BYTE_LEVEL.clone_into(&mut vocabulary.model);
        vocabulary.pre = Some(split::name(&source, &steps, &mut warnings)?.to_owned());
        vocabulary.merges = merges(&source)?;
    } else {
        SENTENCE_PIECE.clone_into(&mut vocabulary.model);
        vocabulary.pre = Some(super::pre::DEFAULT.to_owned());
        vocabulary.add_space_prefix = Some(split::space_prefix(&source, &steps, &mut warnings)?);
        vocabulary.merges = merges(&source)?;
        score::score(&mut vocabulary, &mut warnings)?;
    }
    Checked::new(&vocabulary, &mut vec![])?;
    let particular = source.added_tokens.iter().find(|token| token.is_particular());
    warnings.extend(particular.map(|token| Warning::AddedToken { token: token.content.clone() }));
    Ok((vocabulary, warnings))
}

/// An error about a part of `tokenizer.json`.
fn unsupported(what: &'static str, found: &dyn ToString, supported: &str) -> CheckpointError {
    CheckpointError::UnsupportedTokenizer {
        file: files::TOKENIZER.to_owned(),
        what,
        found: found.to_string(),
        supported: supported.to_owned(),
    }
}

fn check_model(source: &Source) -> Result<(), CheckpointError> {
    let model = &source.model;
    if model.kind.as_deref().is_some_and(|kind| kind != "BPE") {
        return Err(unsupported("model", &model.kind.as_deref().unwrap_or_default(), "BPE"));
    }
    for affix in [&model.continuing_subword_prefix, &model.end_of_word_suffix] {
        if affix.as_deref().is_some_and(|affix| !affix.is_empty()) {
            let found = affix.as_deref().unwrap_or_default();
            return Err(unsupported("affix of subwords", &found, "none"));
        }
    }
    Ok(())
}

/// Tokens by id; ids without one are filled up as other writers of GGUF do.
fn tokens(source: &Source, vocab_size: usize) -> Result<Vec<String>, CheckpointError> {
    let added = source.added_tokens.iter().map(|token| (&token.content, token.id));
    let all = source.model.vocab.iter().map(|(token, id)| (token, *id)).chain(added);
    let mut tokens: Vec<Option<&String>> = vec![];
    for (token, id) in all {
        let at = id as usize;
        if at >= vocab_size {
            let (field, found) = ("an id of tokenizer.json", id.to_string());
            return Err(CheckpointError::TokenId { field, found, tokens: vocab_size });
        }
        if tokens.len() <= at {
            tokens.resize(at + 1, None);
        }
        tokens[at] = Some(token);
    }
    tokens.resize(vocab_size, None);
    let spelt = |(id, token): (usize, Option<&String>)| match token {
        Some(token) => token.clone(),
        None => format!("[PAD{id}]"),
    };
    Ok(tokens.into_iter().enumerate().map(spelt).collect())
}

fn token_types(source: &Source, tokens: &[String]) -> Vec<i32> {
    let kind = |token: &String| match source.model.vocab.contains_key(token) {
        true if source.model.byte_fallback && is_byte(token) => token_type::BYTE,
        true => token_type::NORMAL,
        false => token_type::UNUSED,
    };
    let mut types: Vec<i32> = tokens.iter().map(kind).collect();
    for token in &source.added_tokens {
        types[token.id as usize] = match token.special {
            true if source.model.unk_token.as_ref() == Some(&token.content) => token_type::UNKNOWN,
            true => token_type::CONTROL,
            false => token_type::USER_DEFINED,
        };
    }
    types
}

/// Whether a token is spelt `<0xNN>`.
fn is_byte(token: &str) -> bool {
    let digits = token.strip_prefix("<0x").and_then(|rest| rest.strip_suffix('>'));
    digits.is_some_and(|digits| digits.len() == 2 && u8::from_str_radix(digits, 16).is_ok())
}

fn special_ids(
    vocabulary: &mut Vocabulary,
    source: &Source,
    config: &Config,
) -> Result<(), CheckpointError> {
    let id = |token: &str| {
        let added = source.added_tokens.iter().find(|added| added.content == token);
        added.map(|added| added.id).or_else(|| source.model.vocab.get(token).copied())
    };
    let template = template::read(&source.post_processor)?;
    let named = |token: &Option<String>| token.as_deref().and_then(id);
    let configured = |token| spelling(token).and_then(id);
    vocabulary.bos = named(&template.before).or_else(|| configured(&config.bos_token));
    vocabulary.eos = named(&template.behind).or_else(|| configured(&config.eos_token));
    let unknown = source.model.unk_token.as_deref().or_else(|| spelling(&config.unk_token));
    vocabulary.unknown = unknown.and_then(id);
    vocabulary.padding = configured(&config.pad_token);
    vocabulary.add_bos = Some(template.before.is_some());
    vocabulary.add_eos = Some(template.behind.is_some());
    let is_special =
        |name: &str| source.added_tokens.iter().any(|token| token.special && token.content == name);
    let end = ENDS_OF_TURN.into_iter().filter(|name| is_special(name)).find_map(id);
    vocabulary.end_of_turn = end.filter(|end| Some(*end) != vocabulary.eos);
    Ok(())
}

/// The merges as GGUF has them.
fn merges(source: &Source) -> Result<Vec<String>, CheckpointError> {
    let text = |(index, merge): (usize, &Merge)| {
        let halves = merge.halves().filter(|(left, right)| {
            !left.chars().skip(1).any(|char| char == ' ') && !right.is_empty() && !left.is_empty()
        });
        let (left, right) = halves.ok_or_else(|| CheckpointError::Merge {
            index,
            merge: match merge {
                Merge::Pair(left, right) => format!("{left} {right}"),
                Merge::Text(text) => text.clone(),
            },
            missing: String::new(),
        })?;
        Ok(format!("{left} {right}"))
    };
    source.model.merges.iter().enumerate().map(text).collect()
}
