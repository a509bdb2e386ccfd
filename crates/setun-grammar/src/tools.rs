//! Specifications of tool calls.

use setun_text::{Tool, ToolChoice, ToolFormat};

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
}
