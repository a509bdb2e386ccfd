//! One message of a conversation.

use serde_json::{Map, Value};

/// What one side said.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Message {
    /// Who speaks: `system`, `user`, `assistant`, `tool`, or what else the template knows.
    pub role: String,
    /// What they say.
    #[serde(default)]
    pub content: String,
    /// Whatever else a template may look at, such as `tool_calls` or `name`.
    #[serde(flatten)]
    pub fields: Map<String, Value>,
}

impl Message {
    /// A message with a role and its text.
    pub fn new(role: impl Into<String>, content: impl Into<String>) -> Self {
        Self { role: role.into(), content: content.into(), fields: Map::new() }
    }

    /// What the system prompt says.
    pub fn system(content: impl Into<String>) -> Self {
        Self::new("system", content)
    }

    /// What the user says.
    pub fn user(content: impl Into<String>) -> Self {
        Self::new("user", content)
    }

    /// What the model said.
    pub fn assistant(content: impl Into<String>) -> Self {
        Self::new("assistant", content)
    }
}
