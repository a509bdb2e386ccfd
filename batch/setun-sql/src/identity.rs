//! The identity of a model: what of it decides texts.

use setun::{Engine, GenerateOptions};
use sha2::{Digest, Sha256};

use crate::error::Error;

/// A model as jobs tell it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    /// Its name, which may change.
    pub(crate) name: String,
    pub(crate) fingerprint: String,
}

/// Tokens that tell a model.
const PROBE_TOKENS: u32 = 16;

/// A text that tells a tokenizer: words, numbers, spaces, line breaks, scripts, an emoji, special tokens.
const PROBE_TEXT: &str = "The quick brown fox's 12,345.67 jumps;\n\n\tdéjà vu, ÜBER — Ελλάδα, мир, \
    日本語 한국어 العربية हिन्दी 🙂👩‍🚀   <s></s> <|begin_of_text|><|eot_id|> e\u{301}\u{fb01}";

impl Identity {
    /// The fingerprint is a SHA-256 over what of a model decides its texts: the log-probabilities of
    /// tokens spread over its vocabulary, which are the same bits on every processor, the length of its
    /// context, its default options, its chat templates, and the tokens of a text.
    pub(crate) async fn of(engine: &Engine) -> Result<Self, Error> {
        let vocabulary = u32::try_from(engine.vocab_size()).unwrap_or(u32::MAX);
        let stride = (vocabulary / (PROBE_TOKENS + 1)).max(1);
        let tokens: Vec<u32> = (1..=PROBE_TOKENS)
            .map(|place| place * stride)
            .filter(|&token| token < vocabulary)
            .collect();
        let options = GenerateOptions::new().prompt_logprobs(true);
        let probe = engine.prefill(tokens, options).map_err(Error::Engine)?;
        let probe = probe.finish().await.map_err(Error::Engine)?;
        let mut hash = Sha256::new();
        for logprob in probe.prompt.iter().filter_map(|token| token.logprob) {
            hash.update(logprob.to_le_bytes());
        }
        hash.update(engine.context_length().to_le_bytes());
        hash.update(format!("{:?}", engine.sampling_defaults()));
        hash.update(format!("{:?}", engine.default_options()));
        for (name, template) in engine.chat_templates() {
            hash.update(format!("{name:?}: {template:?}"));
        }
        // A model without a tokenizer has the error.
        hash.update(format!("{:?}", engine.tokenize(PROBE_TEXT).ok()));
        let name = engine.model_name().to_owned();
        Ok(Self { name, fingerprint: digits(&hash.finalize()) })
    }
}

/// Bytes in hexadecimal digits.
pub(crate) fn digits(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from_digit(u32::from(value), 16);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).flatten().collect()
}
