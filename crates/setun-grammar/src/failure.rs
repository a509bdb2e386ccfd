//! Errors from the parser's state and words.

use llguidance::TokenParser;
use llguidance::api::StopReason;

use crate::GrammarError;

/// The most characters of the parser's words, which may have whole grammars in them.
const MAX_WORDS: usize = 2_000;

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
