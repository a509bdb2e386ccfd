//! A bound on the tokens of a text by its length alone.
//!
//! It holds where no byte of a text is lost: of each token it is known how many bytes it stands
//! for at most, so a text has at least its length over the longest. Where spaces may be lost, all
//! others are counted. Where anything else may be, there is no bound.

use std::collections::HashMap;

use serde_json::{Map, Value};
use tokenizers::{Model as _, ModelWrapper, models::bpe::BPE};

use super::encode;

/// How stages make a text shorter, beside the model.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shrinking {
    /// Bytes that become one at most; none where there is no bound.
    factor: Option<usize>,
    /// Whether white space may be lost.
    pub(super) drops_space: bool,
    /// Whether text may become white space.
    makes_space: bool,
    /// Whether bytes become the characters of GPT-2's alphabet.
    byte_level: bool,
}

impl Default for Shrinking {
    fn default() -> Self {
        Self { factor: Some(1), drops_space: false, makes_space: false, byte_level: false }
    }
}

impl Shrinking {
    pub(super) fn add_normalizer(&mut self, kind: &str, fields: &Map<String, Value>) {
        let times = match kind {
            "Prepend" => Some(1),
            "ByteLevel" => {
                self.byte_level = true;
                Some(1)
            }
            _ if self.byte_level => None, // the alphabet may become other letters
            "Strip" => {
                self.drops_space = true;
                Some(1)
            }
            // A composed character is up to three bytes for each of its own; the characters that
            // are written as others beforehand, up to three for one.
            "NFC" => Some(9),
            "Replace" => {
                let content = fields.get("content").and_then(Value::as_str).unwrap_or_default();
                self.makes_space |= content.contains(char::is_whitespace);
                replaced(fields)
            }
            _ => None,
        };
        self.factor = self.factor.zip(times).and_then(|(factor, times)| factor.checked_mul(times));
    }

    pub(super) fn add_pre_tokenizer(&mut self, kind: &str, fields: &Map<String, Value>) {
        let removes = fields.get("behavior").is_some_and(|behavior| behavior == "Removed");
        match kind {
            "ByteLevel" => self.byte_level = true,
            "Whitespace" | "WhitespaceSplit" | "BertPreTokenizer" => self.drops_space = true,
            "Split" | "Punctuation" if removes => self.factor = None,
            "Split" | "Punctuation" | "Metaspace" | "Digits" | "FixedLength" => {}
            _ => self.factor = None,
        }
    }
}

/// Bytes that become one where one text is put for another.
fn replaced(fields: &Map<String, Value>) -> Option<usize> {
    let pattern = fields.get("pattern")?.get("String")?.as_str()?.len();
    let content = fields.get("content")?.as_str()?.len();
    (pattern > 0 && content > 0).then(|| pattern.div_ceil(content))
}

/// The bytes of a text that a token stands for at most.
#[derive(Clone, Copy, Debug)]
pub(super) struct Coverage {
    bytes: usize,
    drops_space: bool,
}

impl Coverage {
    /// Of a tokenizer, with all its tokens; none if a text may lose what is not space.
    pub(super) fn of(
        tokenizer: &tokenizers::Tokenizer,
        vocabulary: &HashMap<String, u32>,
        shrinking: Shrinking,
    ) -> Option<Self> {
        let ModelWrapper::BPE(model) = tokenizer.get_model() else { return None };
        let Shrinking { factor, drops_space, makes_space, byte_level } = shrinking;
        let is_bounded = keeps_all(model, byte_level) && has_each_id_once(vocabulary);
        if !is_bounded || (drops_space && makes_space) {
            return None;
        }
        let added = tokenizer.get_added_vocabulary();
        let is_letters = |token: &String| byte_level && !added.get_vocab().contains_key(token);
        let bytes = |token: &String| {
            if is_letters(token) { token.chars().count() } else { token.len() }
        };
        let mut longest = vocabulary.keys().map(bytes).max()?.max(1);
        for token in added.get_added_tokens_decoder().values().filter(|token| token.normalized) {
            longest = longest.max(encode::normalised_length(tokenizer, &token.content).ok()?);
        }
        Some(Self { bytes: longest.checked_mul(factor?)?, drops_space })
    }

    /// A number of tokens that a text has at least.
    pub(super) fn min_tokens(&self, text: &str) -> usize {
        let is_kept = |character: &char| !self.drops_space || !character.is_whitespace();
        let kept: usize = text.chars().filter(is_kept).map(char::len_utf8).sum();
        kept.div_ceil(self.bytes)
    }
}

/// Whether the model has a token for each byte, and so loses none and never gives its unknown one.
fn keeps_all(model: &BPE, byte_level: bool) -> bool {
    let is_none = |affix: &Option<String>| affix.as_deref().unwrap_or_default().is_empty();
    let has = |token: &str| model.token_to_id(token).is_some();
    let has_bytes = if byte_level {
        alphabet().all(|letter| has(letter.encode_utf8(&mut [0; 4])))
    } else {
        model.byte_fallback && (0..=u8::MAX).all(|byte| has(&format!("<0x{byte:02X}>")))
    };
    has_bytes && is_none(&model.continuing_subword_prefix) && is_none(&model.end_of_word_suffix)
}

/// Merges are by id: two tokens of one id would let a merge stand for texts of any length.
fn has_each_id_once(vocabulary: &HashMap<String, u32>) -> bool {
    let mut ids: Vec<u32> = vocabulary.values().copied().collect();
    ids.sort_unstable();
    ids.windows(2).all(|pair| pair[0] != pair[1])
}

/// GPT-2's alphabet: visible characters of Latin-1 for themselves, and others for the rest.
pub(super) fn alphabet() -> impl Iterator<Item = char> {
    let visible = ('!'..='~').chain('\u{a1}'..='\u{ac}').chain('\u{ae}'..='\u{ff}');
    visible.chain('\u{100}'..='\u{143}')
}
