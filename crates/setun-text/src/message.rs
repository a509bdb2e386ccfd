//! One message of a conversation.

use serde_json::{Map, Value};

use crate::{MessageFault, TextError};

/// What one side said.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "Map<String, Value>")]
pub struct Message {
    /// Who speaks: `system`, `user`, `assistant`, `tool`, or another role that the chat template
    /// names.
    pub role: String,
    /// What they say; none beside `tool_calls` that stand alone.
    pub content: Option<String>,
    /// Whatever else a template may look at, such as `tool_calls` or `name`.
    #[serde(flatten)]
    pub fields: Map<String, Value>,
}

impl Message {
    /// A message with a role and its text.
    pub fn new(role: impl Into<String>, content: impl Into<String>) -> Self {
        Self { role: role.into(), content: Some(content.into()), fields: Map::new() }
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

    /// Adds what the model thought before; templates keep or drop it. An empty text adds nothing.
    #[must_use]
    pub fn with_reasoning(mut self, reasoning: impl Into<String>) -> Self {
        let reasoning = reasoning.into();
        if !reasoning.is_empty() {
            self.fields.insert("reasoning_content".to_owned(), reasoning.into());
        }
        self
    }

    /// Messages as chat APIs have them. A `content` is a text, a list of parts
    /// `{"type": "text", "text": …}`, each of which begins a line, or null beside `tool_calls`.
    ///
    /// # Errors
    ///
    /// [`TextError::Message`], with the place of the first that is none.
    pub fn from_json(messages: Vec<Map<String, Value>>) -> Result<Vec<Self>, TextError> {
        let message =
            |(index, map)| Self::try_from(map).map_err(|fault| TextError::Message { index, fault });
        messages.into_iter().enumerate().map(message).collect()
    }
}

impl TryFrom<Map<String, Value>> for Message {
    type Error = MessageFault;

    fn try_from(mut fields: Map<String, Value>) -> Result<Self, MessageFault> {
        let fault = |field, expected, value: &Value| {
            Err(MessageFault::Field { field, expected, found: kind(value) })
        };
        let role = match fields.shift_remove("role").unwrap_or_default() {
            Value::String(role) => role,
            other => return fault("role", "a string", &other),
        };
        let content = match fields.shift_remove("content").unwrap_or_default() {
            Value::Null => None,
            Value::String(text) => Some(text),
            Value::Array(parts) => Some(joined(&parts)?),
            other => return fault("content", "a string, a list of text parts or null", &other),
        };
        Ok(Self { role, content, fields })
    }
}

/// The texts of parts, as vLLM and llama.cpp join them.
fn joined(parts: &[Value]) -> Result<String, MessageFault> {
    let field = |part: &'_ Value, name| part.get(name).and_then(Value::as_str).map(str::to_owned);
    let text = |part| match (field(part, "type"), field(part, "text")) {
        (Some(kind), Some(text)) if kind == "text" => Ok(text),
        (kind, _) => Err(MessageFault::Part { found: kind.unwrap_or_default() }),
    };
    Ok(parts.iter().map(text).collect::<Result<Vec<_>, _>>()?.join("\n"))
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "missing",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(messages: &Value) -> Result<Vec<Message>, TextError> {
        Message::from_json(serde_json::from_value(messages.clone()).expect("objects"))
    }

    #[test]
    fn content_is_a_text_or_parts_or_absent() {
        let messages = read(&json!([
            {"role": "user", "content": [{"type": "text", "text": "a"}, {"text": "b", "type": "text"}]},
            {"role": "assistant", "content": null, "tool_calls": [{}], "name": "c"},
            {"tool_call_id": "1", "role": "tool", "content": "null"},
            {"role": "user", "content": []},
            {"role": "assistant"},
        ]));
        let messages = messages.expect("five messages");
        let contents: Vec<_> = messages.iter().map(|message| message.content.as_deref()).collect();
        assert_eq!(contents, [Some("a\nb"), None, Some("null"), Some(""), None]);
        let keys: Vec<_> = messages[1].fields.keys().collect();
        assert_eq!(keys, ["tool_calls", "name"]);
        let json = serde_json::to_value(&messages).expect("JSON");
        assert_eq!(read(&json).expect("the same"), messages);
        let plain: Message = serde_json::from_value(json[0].clone()).expect("a message");
        assert_eq!(plain, Message::user("a\nb"));
    }

    #[test]
    fn faults_name_the_message_and_what_is_wrong() {
        let image = json!({"type": "image_url", "image_url": {"url": "data:"}});
        for (message, fault) in [
            (json!({"content": "a"}), "`role` is missing, expected a string"),
            (json!({"role": 3, "content": "a"}), "`role` is a number, expected a string"),
            (
                json!({"role": "user", "content": {"text": "a"}}),
                "`content` is an object, expected a string, a list of text parts or null",
            ),
            (
                json!({"role": "user", "content": [{"type": "text", "text": "a"}, image]}),
                "`content` has a part of type `image_url`, expected {\"type\": \"text\", \"text\": …}",
            ),
            (
                json!({"role": "user", "content": ["a"]}),
                "`content` has a part of type ``, expected {\"type\": \"text\", \"text\": …}",
            ),
        ] {
            let error = read(&json!([{"role": "user", "content": ""}, message])).expect_err(fault);
            assert_eq!(error.to_string(), format!("message 1: {fault}"));
            let error = serde_json::from_value::<Message>(message).expect_err(fault);
            assert_eq!(error.to_string(), fault);
        }
    }
}
