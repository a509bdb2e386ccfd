//! The checks that all kinds of vocabulary share, and what each token and special id is.

use std::{borrow::Cow, collections::HashMap};

use super::{BYTE_LEVEL, SENTENCE_PIECE, VOCABULARY, Vocabulary, Warning, token_type};
use crate::CheckpointError;

/// What a token is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Made by merges.
    Plain,
    /// A single byte, for characters that no token has.
    Byte,
    /// Found in a text before all else.
    UserDefined,
    /// Found in a text before all else, and no text itself.
    Special,
    /// A place without a token, as writers fill a vocabulary up.
    Absent,
}

impl Role {
    /// Whether the token is found in a text before all else.
    pub(super) fn is_added(self) -> bool {
        matches!(self, Self::UserDefined | Self::Special)
    }
}

/// The special ids, all of the vocabulary.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SpecialIds {
    pub(super) bos: Option<u32>,
    pub(super) eos: Option<u32>,
    pub(super) unknown: Option<u32>,
    pub(super) padding: Option<u32>,
    pub(super) end_of_turn: Option<u32>,
}

/// A vocabulary whose lists fit together.
pub(super) struct Checked<'a> {
    pub(super) vocabulary: &'a Vocabulary,
    /// Ids by spelling.
    pub(super) ids: HashMap<&'a str, u32>,
    /// By id.
    pub(super) roles: Vec<Role>,
    pub(super) special: SpecialIds,
}

impl<'a> Checked<'a> {
    pub(super) fn new(
        vocabulary: &'a Vocabulary,
        warnings: &mut Vec<Warning>,
    ) -> Result<Self, CheckpointError> {
        check_kind(vocabulary)?;
        check_lengths(vocabulary)?;
        let ids = ids(vocabulary)?;
        let special = special_ids(vocabulary, warnings)?;
        let roles = roles(vocabulary, special);
        Ok(Self { vocabulary, ids, roles, special })
    }

    /// Number of ids.
    pub(super) fn len(&self) -> usize {
        self.roles.len()
    }

    pub(super) fn role(&self, id: u32) -> Role {
        self.roles[id as usize]
    }

    /// The spelling of a token; llama.cpp gives those that have none a name too.
    pub(super) fn spelling(&self, id: u32) -> Cow<'a, str> {
        match self.vocabulary.tokens[id as usize].as_str() {
            "" => Cow::Owned(format!("[EMPTY_{id}]")),
            token => Cow::Borrowed(token),
        }
    }

    /// Every id, with its role.
    pub(super) fn all(&self) -> impl DoubleEndedIterator<Item = (u32, Role)> + ExactSizeIterator {
        (0..u32::try_from(self.len()).unwrap_or(u32::MAX)).map(|id| (id, self.role(id)))
    }
}

fn check_kind(vocabulary: &Vocabulary) -> Result<(), CheckpointError> {
    let model = &vocabulary.model;
    if [BYTE_LEVEL, SENTENCE_PIECE].contains(&model.as_str()) {
        return Ok(());
    }
    Err(CheckpointError::UnsupportedTokenizer {
        file: VOCABULARY.to_owned(),
        what: "tokenizer.ggml.model",
        found: model.clone(),
        supported: format!("{BYTE_LEVEL}, {SENTENCE_PIECE}"),
    })
}

fn check_lengths(vocabulary: &Vocabulary) -> Result<(), CheckpointError> {
    let expected = vocabulary.tokens.len();
    if expected == 0 || u32::try_from(expected).is_err() {
        let field = "tokenizer.ggml.tokens";
        return Err(CheckpointError::VocabularyLength { field, expected: 1, found: expected });
    }
    for (field, found) in [
        ("tokenizer.ggml.scores", vocabulary.scores.len()),
        ("tokenizer.ggml.token_type", vocabulary.token_types.len()),
    ] {
        if found != 0 && found != expected {
            return Err(CheckpointError::VocabularyLength { field, expected, found });
        }
    }
    Ok(())
}

/// Ids by spelling; tokens without one have no entry.
fn ids(vocabulary: &Vocabulary) -> Result<HashMap<&str, u32>, CheckpointError> {
    let mut ids = HashMap::with_capacity(vocabulary.tokens.len());
    for (id, token) in (0..).zip(&vocabulary.tokens) {
        if token.is_empty() {
            continue;
        }
        if let Some(first) = ids.insert(token.as_str(), id) {
            let (token, first, second) = (token.clone(), first as usize, id as usize);
            return Err(CheckpointError::DuplicateToken { token, first, second });
        }
    }
    Ok(ids)
}

fn special_ids(
    vocabulary: &Vocabulary,
    warnings: &mut Vec<Warning>,
) -> Result<SpecialIds, CheckpointError> {
    let tokens = vocabulary.tokens.len();
    let checked = |field, id: Option<u32>| match id {
        Some(id) if id as usize >= tokens => {
            Err(CheckpointError::TokenId { field, found: id.to_string(), tokens })
        }
        id => Ok(id),
    };
    // `SentencePiece` writes these first, so llama.cpp takes them where a file gives none.
    let or = |id: Option<u32>, default: u32| {
        let is_text = |id: u32| match vocabulary.token_types.get(id as usize) {
            Some(&kind) => kind == token_type::NORMAL || kind == token_type::BYTE,
            None => id as usize >= tokens,
        };
        let default = (vocabulary.model == SENTENCE_PIECE && !is_text(default)).then_some(default);
        id.or(default.filter(|&id| (id as usize) < tokens))
    };
    let padding = vocabulary.padding.filter(|&id| (id as usize) < tokens);
    if let (Some(found), None) = (vocabulary.padding, padding) {
        warnings.push(Warning::PaddingToken { found, tokens });
    }
    Ok(SpecialIds {
        bos: checked("tokenizer.ggml.bos_token_id", or(vocabulary.bos, 1))?,
        eos: checked("tokenizer.ggml.eos_token_id", or(vocabulary.eos, 2))?,
        unknown: checked("tokenizer.ggml.unknown_token_id", or(vocabulary.unknown, 0))?,
        padding,
        end_of_turn: checked("tokenizer.ggml.eot_token_id", vocabulary.end_of_turn)?,
    })
}

fn roles(vocabulary: &Vocabulary, special: SpecialIds) -> Vec<Role> {
    let has_bytes = vocabulary.model == SENTENCE_PIECE;
    let role = |(id, token): (usize, &String)| match vocabulary.token_types.get(id) {
        // Some converters type all tokens alike.
        None | Some(&token_type::NORMAL) if has_bytes && is_byte(token) => Role::Byte,
        Some(&token_type::CONTROL | &token_type::UNKNOWN) => Role::Special,
        Some(&token_type::USER_DEFINED) => Role::UserDefined,
        Some(&token_type::BYTE) => Role::Byte,
        Some(&token_type::UNUSED) if is_filling(id, token) => Role::Absent,
        _ => Role::Plain,
    };
    let mut roles: Vec<Role> = vocabulary.tokens.iter().enumerate().map(role).collect();
    let ids = [special.bos, special.eos, special.unknown, special.end_of_turn];
    for id in ids.into_iter().flatten() {
        roles[id as usize] = Role::Special;
    }
    roles
}

/// Whether a token has the name of a byte: `<0x0A>`.
fn is_byte(token: &str) -> bool {
    let digits = token.strip_prefix("<0x").and_then(|rest| rest.strip_suffix('>'));
    digits.is_some_and(|digits| {
        digits.len() == 2 && digits.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'A'..=b'F'))
    })
}

/// Whether a token is what writers of GGUF fill a vocabulary up with.
fn is_filling(id: usize, token: &str) -> bool {
    token.is_empty()
        || token.strip_prefix("[PAD").and_then(|rest| rest.strip_suffix(']'))
            == Some(id.to_string().as_str())
}
