//! Text to token ids and back, and Hugging Face's `tokenizer.json`.

mod byte_level;
mod charsmap;
mod check;
mod encode;
mod field;
mod growth;
mod guard;
mod length;
mod model;
mod pattern;
mod stages;
#[cfg(test)]
mod tests;

use crate::{TextError, token_bytes::token_bytes};

/// Text to token ids and back.
///
/// The engine is written against this trait, so a tokenizer of another format needs nothing
/// else. [`StreamDecoder`](crate::StreamDecoder) relies on two properties: a token spelt
/// `<0xNN>` may stand for one byte of a run of such tokens, and otherwise text that more
/// tokens follow changes only in a character that is not complete yet (shown as U+FFFD).
pub trait Tokenizer: Send + Sync {
    /// The ids of `text`.
    ///
    /// With `add_special` the tokenizer's own post-processor adds what it adds once to a whole
    /// prompt, such as a begin-of-text token. A rendered chat template has those already.
    /// The spelling of a special token inside `text` always becomes that token.
    fn encode(&self, text: &str, add_special: bool) -> Result<Vec<u32>, TextError>;

    /// The ids of `text` without the character `mark`; the spelling of a special token that has the
    /// mark inside stays text.
    ///
    /// Only marks inside the spellings of [`special_tokens`](Self::special_tokens) are expected. A
    /// tokenizer that has such spellings has to implement this too.
    fn encode_marked(&self, text: &str, mark: char) -> Result<Vec<u32>, TextError> {
        self.encode(&text.replace(mark, ""), false)
    }

    /// The spellings of all special tokens; none by default.
    fn special_tokens(&self) -> Vec<String> {
        vec![]
    }

    /// The text of `ids`, without special tokens if `skip_special`.
    ///
    /// Bytes that form no character become U+FFFD. An id outside the vocabulary has no text.
    fn decode(&self, ids: &[u32], skip_special: bool) -> Result<String, TextError>;

    /// One more than the highest id, added tokens included.
    ///
    /// A model may have more logits than this: its table is often padded.
    fn vocab_size(&self) -> usize;

    /// The id of a token by its spelling in the vocabulary.
    fn token_to_id(&self, token: &str) -> Option<u32>;

    /// The spelling of a token in the vocabulary.
    fn id_to_token(&self, id: u32) -> Option<String>;

    /// The bytes that a token adds to a text that has begun; they need not be whole characters.
    ///
    /// `None` for special tokens and ids outside the vocabulary. Grammars need the bytes of all
    /// others; a tokenizer that does not give them, as by default, works without grammars only.
    fn token_bytes(&self, id: u32) -> Option<Vec<u8>> {
        let _ = id;
        None
    }

    /// A number of tokens that `text` has at least, found without encoding it: its length over
    /// that of the longest token.
    ///
    /// The engine refuses a prompt by it that is far beyond the context. 0, the default, where
    /// the length of a text says nothing about its tokens.
    fn min_tokens(&self, text: &str) -> usize {
        let _ = text;
        0
    }
}

/// A tokenizer read from a `tokenizer.json`, through the `tokenizers` crate.
///
/// Truncation, padding and dropout that the file requests are left out: they belong to training,
/// and a prompt must never be cut in silence.
///
/// The file may come from anybody. What would let that crate panic, or take memory or time beyond
/// a multiple of a text's length, is refused when the file is read, or when the text is.
pub struct HfTokenizer {
    inner: tokenizers::Tokenizer,
    vocab_size: usize,
    /// What the post-processor puts before and behind a prompt.
    around: [Vec<u32>; 2],
    coverage: Option<length::Coverage>,
}

impl HfTokenizer {
    /// Reads the bytes of a `tokenizer.json`.
    ///
    /// # Errors
    ///
    /// If the bytes are no JSON of this form, or if a field has a value that is not safe to use.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, TextError> {
        let file = check::checked(bytes)?;
        let build = || {
            let inner = check::build(file.tokenizer, &file.added_tokens)?;
            check::around(&inner).map(|around| (inner, around))
        };
        let built = guard::caught(build);
        let (inner, around) = built.map_err(|reason| TextError::TokenizerFile { reason })??;
        let vocabulary = inner.get_vocab(true);
        let vocab_size = vocabulary.values().max().map_or(0, |&id| id as usize + 1);
        let coverage = length::Coverage::of(&inner, &vocabulary, file.shrinking);
        Ok(Self { inner, vocab_size, around, coverage })
    }

    /// The same tokenizer for text that is not trusted: the spelling of a special token in it
    /// stays plain text.
    #[must_use]
    pub fn with_specials_as_text(mut self) -> Self {
        self.inner.set_encode_special_tokens(true);
        self
    }

    /// The ids of a text alone, without its marks.
    fn ids(&self, text: &str, mark: Option<char>) -> Result<Vec<u32>, TextError> {
        let refused = |reason| TextError::Encode { bytes: text.len(), reason };
        guard::caught(|| encode::ids(&self.inner, text, mark)).and_then(|ids| ids).map_err(refused)
    }
}

impl Tokenizer for HfTokenizer {
    fn encode(&self, text: &str, add_special: bool) -> Result<Vec<u32>, TextError> {
        let ids = self.ids(text, None)?;
        let [before, behind] = &self.around;
        Ok(if add_special { [before, &ids, behind].map(Vec::as_slice).concat() } else { ids })
    }

    fn encode_marked(&self, text: &str, mark: char) -> Result<Vec<u32>, TextError> {
        self.ids(text, Some(mark))
    }

    fn special_tokens(&self) -> Vec<String> {
        encode::special_tokens(&self.inner).map(str::to_owned).collect()
    }

    fn decode(&self, ids: &[u32], skip_special: bool) -> Result<String, TextError> {
        let refused = |reason| TextError::Decode { count: ids.len(), reason };
        let text = guard::caught(|| encode::text(&self.inner, ids, skip_special));
        text.and_then(|text| text).map_err(refused)
    }

    fn vocab_size(&self) -> usize {
        self.vocab_size
    }

    fn token_to_id(&self, token: &str) -> Option<u32> {
        self.inner.token_to_id(token)
    }

    fn id_to_token(&self, id: u32) -> Option<String> {
        self.inner.id_to_token(id)
    }

    fn token_bytes(&self, id: u32) -> Option<Vec<u8>> {
        let spelling = self.inner.id_to_token(id)?;
        if self.inner.get_added_vocabulary().is_special_token(&spelling) {
            return None;
        }
        let decoder = self.inner.get_decoder()?;
        guard::caught(|| token_bytes(decoder, spelling)).ok().flatten()
    }

    fn min_tokens(&self, text: &str) -> usize {
        self.coverage.as_ref().map_or(0, |coverage| coverage.min_tokens(text))
    }
}

impl std::fmt::Debug for HfTokenizer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("HfTokenizer")
            .field("vocab_size", &self.vocab_size)
            .finish_non_exhaustive()
    }
}
