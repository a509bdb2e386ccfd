//! The `Tokenizer` trait.

use crate::TextError;

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
    /// others; a tokenizer that does not tell them, as by default, works without grammars only.
    fn token_bytes(&self, id: u32) -> Option<Vec<u8>> {
        let _ = id;
        None
    }
}
