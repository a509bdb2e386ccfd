//! Log-probabilities of tokens, as chats and as completions have them.

use std::fmt::Write as _;

use serde::{Serialize, Serializer};
use setun::TextDelta;

use crate::token_words::TokenWords;

/// Most likely tokens that a request may have for each place.
pub(crate) const MAX_TOP_LOGPROBS: usize = 20;

/// The API's number for a probability of 0, of which JSON has no logarithm.
const LEAST: f64 = -9999.0;

/// Log-probabilities of a chat's text.
#[derive(Debug, Serialize)]
pub(crate) struct ChatLogprobs {
    pub(crate) content: Vec<ChatToken>,
    refusal: Option<()>,
}

/// The log-probability of a token, and the likeliest in its place.
#[derive(Debug, Serialize)]
pub(crate) struct ChatToken {
    #[serde(flatten)]
    token: NamedToken,
    top_logprobs: Vec<NamedToken>,
}

#[derive(Debug, Serialize)]
struct NamedToken {
    token: String,
    logprob: f64,
    bytes: Vec<u8>,
}

/// Log-probabilities of a completion's text, one of each list for each token.
#[derive(Debug, Serialize)]
pub(super) struct CompletionLogprobs {
    text_offset: Vec<usize>,
    token_logprobs: Vec<Option<f64>>,
    tokens: Vec<String>,
    top_logprobs: Vec<Option<TopLogprobs>>,
}

/// Likely tokens by their names.
#[derive(Debug)]
struct TopLogprobs(Vec<(String, f64)>);

impl ChatLogprobs {
    pub(crate) fn new(words: &TokenWords, deltas: &[TextDelta]) -> Self {
        Self { content: chat_tokens(words, deltas), refusal: None }
    }
}

/// The log-probabilities of an answer's tokens, in the form of chats; reasoning has none.
pub(crate) fn chat_tokens(words: &TokenWords, deltas: &[TextDelta]) -> Vec<ChatToken> {
    let named = |token: u32, logprob: f64| {
        let bytes = words.bytes(token).to_vec();
        let token = String::from_utf8_lossy(&bytes).into_owned();
        NamedToken { token, logprob: finite(logprob), bytes }
    };
    let token = |delta: &TextDelta| {
        let top = delta.top_logprobs.iter().map(|top| named(top.token, top.logprob));
        let token = named(delta.token, delta.logprob?);
        Some(ChatToken { token, top_logprobs: top.collect() })
    };
    deltas.iter().filter(|delta| delta.reasoning.is_none()).filter_map(token).collect()
}

impl CompletionLogprobs {
    /// Those of tokens whose text begins at this offset, in characters, which is moved on.
    pub(super) fn new<'a>(
        words: &TokenWords,
        deltas: impl IntoIterator<Item = &'a TextDelta>,
        offset: &mut usize,
    ) -> Self {
        let mut all = Self {
            text_offset: vec![],
            token_logprobs: vec![],
            tokens: vec![],
            top_logprobs: vec![],
        };
        for delta in deltas {
            all.text_offset.push(*offset);
            *offset += delta.text.chars().count();
            all.token_logprobs.push(delta.logprob.map(finite));
            all.tokens.push(name(words.bytes(delta.token)));
            all.top_logprobs.push(TopLogprobs::new(words, delta));
        }
        all
    }
}

impl TopLogprobs {
    /// The likeliest tokens, and the one that came. None for the first token of a prompt.
    fn new(words: &TokenWords, delta: &TextDelta) -> Option<Self> {
        let own = (delta.token, delta.logprob?);
        let top = delta.top_logprobs.iter().map(|top| (top.token, top.logprob));
        let mut named: Vec<(String, f64)> = vec![];
        for (token, logprob) in top.chain([own]) {
            let name = name(words.bytes(token));
            if named.iter().all(|(other, _)| *other != name) {
                named.push((name, finite(logprob)));
            }
        }
        Some(Self(named))
    }
}

impl Serialize for TopLogprobs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(token, logprob)| (token, logprob)))
    }
}

/// The name of a token: its text, or its bytes where they are no text.
fn name(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes.iter().fold("bytes:".to_owned(), |mut name, byte| {
            let _ = write!(name, "\\x{byte:02x}"); // a string takes all
            name
        }),
    }
}

fn finite(logprob: f64) -> f64 {
    logprob.max(LEAST)
}
