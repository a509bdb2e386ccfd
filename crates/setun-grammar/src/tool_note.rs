//! Parts of tool calls that are left free.

use std::fmt;

use crate::GrammarError;

/// A part of a tool's arguments that is left free, since its schema cannot be applied there.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolNote {
    /// Place of the tool, from 0.
    pub tool: usize,
    /// Its name.
    pub name: String,
    /// The keyword that is not applied.
    pub reason: GrammarError,
}

impl fmt::Display for ToolNote {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, reason, .. } = self;
        write!(formatter, "parameters of the tool `{name}`: {reason}; calls are not held to it")
    }
}
