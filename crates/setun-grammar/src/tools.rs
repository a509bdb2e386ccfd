//! Specifications of tool calls.

use std::fmt;

use setun_text::{Tool, ToolChoice, ToolFormat};

use crate::{GrammarError, GrammarSpec};

/// An answer that may have to call tools.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolGrammar {
    /// The tools, at least one.
    pub tools: Vec<Tool>,
    /// How calls are written.
    pub format: ToolFormat,
    /// Whether a call has to come. [`ToolChoice::Auto`] lets any text come before the first call, or
    /// without one.
    pub choice: ToolChoice,
    /// Whether several calls may come.
    pub parallel: bool,
    /// What an answer without calls is. With it no text comes before a call.
    pub text: Option<Box<GrammarSpec>>,
}

/// A part of a tool's arguments that is left free, since its schema cannot be applied there.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolNote {
    /// Place of the tool, from 0.
    pub tool: usize,
    /// Its name.
    pub name: String,
    /// What is not applied.
    pub reason: GrammarError,
}

impl fmt::Display for ToolNote {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, reason, .. } = self;
        write!(formatter, "parameters of the tool `{name}`: {reason}; calls are not held to it")
    }
}

impl ToolGrammar {
    /// The format of an answer without calls, where there may be one.
    pub(crate) fn text(&self) -> Option<&GrammarSpec> {
        self.text.as_deref().filter(|_| !self.choice.begins_with_call())
    }
}

impl GrammarSpec {
    /// Whether its texts are JSON.
    pub(crate) fn is_json(&self) -> bool {
        matches!(self, Self::JsonSchema(_) | Self::JsonObject)
    }
}
