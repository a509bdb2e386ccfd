//! Specifications of structured output.

use serde_json::Value;
use setun_text::{Tool, ToolChoice, ToolFormat};

use crate::GrammarError;

/// The structure that a text must have.
///
/// A text has it from its first generated token to the end token; what the prompt ends with is
/// not part of it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum GrammarSpec {
    /// A JSON value that is valid under this schema. Which keywords are supported, and which are
    /// refused, is in `docs/structured-output.md`.
    ///
    /// An object with a list of properties has no others, unless `additionalProperties` allows
    /// them or [`with_open_objects`](Self::with_open_objects) does.
    ///
    /// The only white space is a space after a comma or a colon, unless the schema's
    /// `x-guidance` has `whitespace_flexible`.
    JsonSchema(Value),
    /// Any JSON object, with the same white space.
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
    /// An answer that calls tools, or may do so.
    Tools(ToolGrammar),
}

/// An answer that may have to call tools.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolGrammar {
    /// The tools, at least one.
    pub tools: Vec<Tool>,
    /// The format of calls.
    pub format: ToolFormat,
    /// Whether a call has to come. [`ToolChoice::Auto`] lets any text come before the first call, or
    /// without one.
    pub choice: ToolChoice,
    /// Whether several calls may come.
    pub parallel: bool,
    /// The grammar of an answer without calls. With it no text comes before a call.
    pub text: Option<Box<GrammarSpec>>,
}

impl GrammarSpec {
    /// A JSON schema from its text.
    ///
    /// # Errors
    ///
    /// If the text is no JSON, or its values lie in each other deeper than 127.
    pub fn json_schema(text: &str) -> Result<Self, GrammarError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text); // a byte order mark
        let schema = serde_json::from_str(text).map_err(|error| {
            let reason = format!("it is no JSON that can be read: {error}");
            GrammarError::Schema { reason }
        })?;
        Ok(Self::JsonSchema(schema))
    }

    /// The same with further properties wherever `additionalProperties` is absent, as JSON Schema
    /// reads it. Without effect on other forms.
    ///
    /// It sets `open_objects` in the schema's `x-guidance`.
    #[must_use]
    pub fn with_open_objects(mut self) -> Self {
        if let Self::JsonSchema(schema) = &mut self {
            crate::open_objects::open_objects(schema);
        }
        self
    }

    /// Whether its texts are JSON.
    pub(crate) fn is_json(&self) -> bool {
        matches!(self, Self::JsonSchema(_) | Self::JsonObject)
    }
}

impl ToolGrammar {
    /// The format of an answer without calls, where there may be one.
    pub(crate) fn text(&self) -> Option<&GrammarSpec> {
        self.text.as_deref().filter(|_| !self.choice.begins_with_call())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_is_read_from_its_text() {
        let nested = |depth| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(GrammarSpec::json_schema("{\"items\": true}").is_ok());
        assert!(GrammarSpec::json_schema(&nested(127)).is_ok());
        for (text, reason) in
            [(nested(128), "recursion limit exceeded"), ("{".to_owned(), "EOF while parsing")]
        {
            let error = GrammarSpec::json_schema(&text).expect_err("it is refused").to_string();
            let begins = "the schema cannot be followed: it is no JSON that can be read: ";
            assert!(error.starts_with(begins) && error.contains(reason), "{error}");
        }
    }
}
