//! The tokenizer of a GGUF file as the files of a Hugging Face folder, and back.
//!
//! A GGUF file keeps a tokenizer as a list of tokens with types, scores or merges, and the *name*
//! of how text is split beforehand. `tokenizer.json` spells all of it out, so a name has to be
//! known here ([`known_pre_tokenizers`]); one that is not is an error, as a wrong split gives
//! other tokens without a sign of it.
//!
//! - `gpt2` is byte-level BPE: merges in their order, over pieces that the named patterns cut.
//! - `llama` is `SentencePiece`'s BPE: of all neighbours that form a token those with the highest
//!   score are joined, the leftmost first. The same comes of merges in the order of their scores.

mod added;
mod byte_level;
mod check;
mod json;
mod recognise;
mod scores;
mod sentence_piece;
mod source;
#[cfg(test)]
mod tests;
mod warning;

use crate::{CheckpointError, Files, files};

use crate::pretokenizer as pre;
#[cfg(test)]
use pre::known_pre_tokenizers;
pub(crate) use warning::Warning;

/// Names the vocabulary in errors, as a file's name does elsewhere.
const VOCABULARY: &str = "the GGUF vocabulary";
/// `tokenizer.ggml.model` of byte-level BPE.
const BYTE_LEVEL: &str = "gpt2";
/// `tokenizer.ggml.model` of `SentencePiece`'s BPE.
const SENTENCE_PIECE: &str = "llama";

/// What a GGUF file says of its tokenizer: the values under `tokenizer.*`, as they are.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Vocabulary {
    /// `general.architecture`.
    pub(crate) architecture: String,
    /// `tokenizer.ggml.model`: `gpt2` or `llama`.
    pub(crate) model: String,
    /// `tokenizer.ggml.pre`.
    pub(crate) pre: Option<String>,
    /// `tokenizer.ggml.tokens`, by id.
    pub(crate) tokens: Vec<String>,
    /// `tokenizer.ggml.scores`, as many as tokens, or none.
    pub(crate) scores: Vec<f32>,
    /// `tokenizer.ggml.token_type`, as many as tokens, or none: the constants of [`token_type`].
    pub(crate) token_types: Vec<i32>,
    /// `tokenizer.ggml.merges`: two tokens with a space between, the first merge first.
    pub(crate) merges: Vec<String>,
    /// `tokenizer.ggml.bos_token_id`.
    pub(crate) bos: Option<u32>,
    /// `tokenizer.ggml.eos_token_id`.
    pub(crate) eos: Option<u32>,
    /// `tokenizer.ggml.unknown_token_id`.
    pub(crate) unknown: Option<u32>,
    /// `tokenizer.ggml.padding_token_id`.
    pub(crate) padding: Option<u32>,
    /// `tokenizer.ggml.eot_token_id`, which ends a turn.
    pub(crate) end_of_turn: Option<u32>,
    /// `tokenizer.ggml.add_bos_token`.
    pub(crate) add_bos: Option<bool>,
    /// `tokenizer.ggml.add_eos_token`.
    pub(crate) add_eos: Option<bool>,
    /// `tokenizer.ggml.add_space_prefix`, of `llama` only.
    pub(crate) add_space_prefix: Option<bool>,
    /// `tokenizer.ggml.remove_extra_whitespaces`, of `llama` only.
    pub(crate) remove_extra_whitespaces: Option<bool>,
    /// `tokenizer.chat_template`.
    pub(crate) chat_template: Option<String>,
}

/// The numbers of `tokenizer.ggml.token_type`.
pub(crate) mod token_type {
    /// A token of plain text.
    pub(crate) const NORMAL: i32 = 1;
    /// What stands for characters that no token has.
    pub(crate) const UNKNOWN: i32 = 2;
    /// A token that is no text, such as the end of a turn.
    pub(crate) const CONTROL: i32 = 3;
    /// Text that is found before all else.
    pub(crate) const USER_DEFINED: i32 = 4;
    /// A place without a token.
    pub(crate) const UNUSED: i32 = 5;
    /// A single byte, spelt `<0xNN>`.
    pub(crate) const BYTE: i32 = 6;
}

/// A vocabulary as files of a Hugging Face folder.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Converted {
    /// `tokenizer.json` and `tokenizer_config.json`.
    pub(crate) files: Files,
    /// Every token that ends a text or a turn, the one of the metadata first; for `eos_token_id`
    /// of `generation_config.json`.
    pub(crate) end_tokens: Vec<u32>,
    /// What a user should know.
    pub(crate) warnings: Vec<Warning>,
}

impl Vocabulary {
    /// Makes `tokenizer.json` and `tokenizer_config.json`.
    ///
    /// # Errors
    ///
    /// If tokens, types, scores, merges or special ids do not fit together, or if the kind of
    /// tokenizer or its way to split text is not known.
    pub(crate) fn to_files(&self) -> Result<Converted, CheckpointError> {
        let mut warnings = Vec::new();
        let checked = check::Checked::new(self, &mut warnings)?;
        let tokenizer = match self.model.as_str() {
            BYTE_LEVEL => byte_level::tokenizer(&checked, &mut warnings)?,
            _ => sentence_piece::tokenizer(&checked, &mut warnings)?,
        };
        let mut files = Files::default();
        files.insert(files::TOKENIZER, crate::json::write(files::TOKENIZER, &tokenizer)?);
        files.insert(files::TOKENIZER_CONFIG, json::config(&checked)?);
        let end_tokens = added::end_tokens(&checked, &mut warnings);
        Ok(Converted { files, end_tokens, warnings })
    }

    /// Makes a vocabulary of `vocab_size` tokens from a `tokenizer.json`, and from a
    /// `tokenizer_config.json` where there is one. Ids without a token become unused ones.
    ///
    /// The architecture stays empty: it is not in these files.
    ///
    /// # Errors
    ///
    /// If a file is not of the form that it must have, or if a GGUF file has no way to say what
    /// the tokenizer does.
    pub(crate) fn from_files(
        tokenizer: &[u8],
        config: Option<&[u8]>,
        vocab_size: usize,
    ) -> Result<(Self, Vec<Warning>), CheckpointError> {
        recognise::vocabulary(tokenizer, config, vocab_size)
    }
}
