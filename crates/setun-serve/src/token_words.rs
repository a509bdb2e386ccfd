//! Bytes of the tokens of a vocabulary, for log-probabilities.

use std::sync::OnceLock;

use setun::{
    Engine, EngineError,
    text::{TokenTable, TokenWord},
};

/// The bytes of each token, read from the tokenizer when they are first needed.
#[derive(Debug, Default)]
pub(crate) struct TokenWords(OnceLock<Vec<Box<[u8]>>>);

impl TokenWords {
    /// Reads the tokenizer, which takes some time for a large vocabulary.
    pub(crate) fn load(&self, engine: &Engine) -> Result<(), EngineError> {
        if self.0.get().is_none() {
            let table = engine.token_table()?;
            let _ = self.0.set(words(&table)); // another request was faster
        }
        Ok(())
    }

    /// The bytes of a token; of a special one those of its name. None before they are loaded.
    pub(crate) fn bytes(&self, token: u32) -> &[u8] {
        let words = self.0.get().map(Vec::as_slice).unwrap_or_default();
        words.get(token as usize).map(|word| &**word).unwrap_or_default()
    }
}

fn words(table: &TokenTable) -> Vec<Box<[u8]>> {
    let bytes = |word: TokenWord<'_>| match word {
        TokenWord::Bytes(bytes) | TokenWord::Name(bytes) => Box::from(bytes),
    };
    table.words().map(bytes).collect()
}
