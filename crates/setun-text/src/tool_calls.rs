//! Calls of functions in what a model writes.

mod format;
mod parameters;
mod reader;
mod xml;

use serde::Serialize;
use serde_json::{Value, json};

pub use format::{ArgumentForm, ToolFormat};
pub use parameters::{PARAMETER, Parameter, Types};
pub use reader::{ToolCallReader, ToolStep};

use crate::Message;

/// A call of a function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolCall {
    /// Nine letters and digits, the same for the same request.
    pub id: String,
    /// Name of the function.
    pub name: String,
    /// The arguments as JSON text.
    pub arguments: String,
}

/// A piece of a call. All pieces joined are the call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ToolCallDelta {
    /// Place of the call among those of the answer, from 0.
    pub index: usize,
    /// With the first piece.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// With the first piece.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What comes next of the arguments' JSON text.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub arguments: String,
}

impl ToolCall {
    /// Adds a piece to the calls of an answer.
    pub fn join(calls: &mut Vec<Self>, delta: &ToolCallDelta) {
        let ToolCallDelta { index, id, name, arguments } = delta;
        if *index >= calls.len() {
            calls.resize_with(index + 1, Self::default);
        }
        let call = &mut calls[*index];
        call.id.extend(id.as_deref());
        call.name.extend(name.as_deref());
        call.arguments.push_str(arguments);
    }

    /// The call as chat APIs have it.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let function = json!({"name": self.name, "arguments": self.arguments});
        json!({"id": self.id, "type": "function", "function": function})
    }
}

impl Message {
    /// An answer with calls, as the conversation continues.
    #[must_use]
    pub fn calls(content: impl Into<String>, calls: &[ToolCall]) -> Self {
        let mut message = Self::assistant(content);
        if !calls.is_empty() {
            let calls = calls.iter().map(ToolCall::to_json).collect();
            message.fields.insert("tool_calls".to_owned(), Value::Array(calls));
        }
        message
    }

    /// The result of a call.
    #[must_use]
    pub fn tool(call: &ToolCall, result: impl Into<String>) -> Self {
        let mut message = Self::new("tool", result);
        message.fields.insert("tool_call_id".to_owned(), call.id.as_str().into());
        message.fields.insert("name".to_owned(), call.name.as_str().into());
        message
    }
}

#[cfg(test)]
mod tests;
