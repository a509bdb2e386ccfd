//! Specifications of structured output.

use serde_json::Value;

/// The structure that a text must have.
///
/// A text has it from its first generated token to the end token; what the prompt ends with is
/// not part of it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum GrammarSpec {
    /// A JSON value that is valid under this schema. Which keywords are supported, and which are
    /// refused, is in `docs/structured-output.md`.
    JsonSchema(Value),
    /// Any JSON object.
    JsonObject,
    /// A text that the regular expression matches as a whole, in the syntax of Rust's crate
    /// `regex`, without anchors, word boundaries and look-around.
    Regex(String),
    /// One of these texts.
    Choice(Vec<String>),
    /// A grammar in `llguidance`'s variant of Lark, whose first rule is `start`. Terminals are
    /// matched as far as they go.
    Lark(String),
    /// A grammar in the notation of llama.cpp, whose first rule is `root`. The supported subset
    /// is in `docs/structured-output.md`.
    Gbnf(String),
}
