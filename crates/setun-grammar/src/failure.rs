//! Errors from the parser's state and words.

use llguidance::TokenParser;
use llguidance::api::StopReason;
#[cfg(not(target_arch = "wasm32"))]
use llguidance::panic_utils;

use crate::GrammarError;

/// The most characters of the parser's words, which may have whole grammars in them.
const MAX_WORDS: usize = 2_000;

/// Asks the parser. Natively a panic in it becomes an error. WebAssembly cannot catch one: the
/// parser's own try would only keep its words from the console.
pub(crate) fn caught<T>(question: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<T> {
    #[cfg(not(target_arch = "wasm32"))]
    return panic_utils::catch_unwind(std::panic::AssertUnwindSafe(question));
    #[cfg(target_arch = "wasm32")]
    question()
}

/// Why the parser cannot go on after this many tokens, from its state and its words.
pub(crate) fn failure(parser: &TokenParser, taken: usize, words: &str) -> GrammarError {
    let reason = first_paragraph(words);
    match parser.stop_reason() {
        StopReason::NoExtensionBias => GrammarError::NoTokenFits { taken },
        StopReason::LexerTooComplex | StopReason::ParserTooComplex => {
            GrammarError::TooComplex { reason }
        }
        _ => GrammarError::Parser { taken, reason },
    }
}

/// What the parser says, without the traces and states that it adds.
pub(crate) fn first_paragraph(words: &str) -> String {
    let lines = words.lines().take_while(|line| !line.starts_with('<'));
    let words = lines.map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ");
    words.chars().take(MAX_WORDS).collect()
}
