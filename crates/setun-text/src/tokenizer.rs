//! Text to token ids and back, and Hugging Face's `tokenizer.json`.

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
}

/// A tokenizer read from a `tokenizer.json`, through the `tokenizers` crate.
///
/// Truncation and padding that the file requests are left out: they belong to training, and
/// a prompt must never be cut in silence.
pub struct HfTokenizer {
    inner: tokenizers::Tokenizer,
    vocab_size: usize,
}

impl HfTokenizer {
    /// Reads the bytes of a `tokenizer.json`.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, TextError> {
        let refused =
            |source: tokenizers::Error| TextError::TokenizerFile { reason: source.to_string() };
        let mut inner = tokenizers::Tokenizer::from_bytes(bytes).map_err(refused)?;
        inner.with_truncation(None).map_err(refused)?;
        inner.with_padding(None);
        let highest = inner.get_vocab(true).into_values().max();
        Ok(Self { inner, vocab_size: highest.map_or(0, |id| id as usize + 1) })
    }

    /// The same tokenizer for text that is not trusted: the spelling of a special token in it
    /// stays plain text.
    #[must_use]
    pub fn with_specials_as_text(mut self) -> Self {
        self.inner.set_encode_special_tokens(true);
        self
    }
}

impl Tokenizer for HfTokenizer {
    fn encode(&self, text: &str, add_special: bool) -> Result<Vec<u32>, TextError> {
        let encoding = self.inner.encode_fast(text, add_special).map_err(|source| {
            TextError::Encode { bytes: text.len(), reason: source.to_string() }
        })?;
        Ok(encoding.get_ids().to_vec())
    }

    fn decode(&self, ids: &[u32], skip_special: bool) -> Result<String, TextError> {
        self.inner
            .decode(ids, skip_special)
            .map_err(|source| TextError::Decode { count: ids.len(), reason: source.to_string() })
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
        token_bytes(self.inner.get_decoder()?, spelling)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_where_a_file_is_broken() {
        let error = HfTokenizer::from_bytes(b"{\"version\": \"1.0\",").expect_err("half a file");
        assert!(error.to_string().contains("line 1"), "{error}");
        let error = HfTokenizer::from_bytes(b"\xff\xfe").expect_err("not even text");
        assert!(matches!(error, TextError::TokenizerFile { .. }));
    }
}
