//! Conversations that are made from the items and blocks of other APIs.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use setun::Message;

/// Messages so far. Chat templates have one system message, the first: all such texts become it.
#[derive(Debug, Default)]
pub(crate) struct Conversation {
    system: Vec<String>,
    /// The assistant's reasoning before its next message.
    reasoning: String,
    messages: Vec<Message>,
    /// Names of functions by the ids of their calls.
    names: BTreeMap<String, String>,
}

impl Conversation {
    pub(crate) fn add_system(&mut self, text: String) {
        self.system.push(text);
    }

    pub(crate) fn add(&mut self, role: &str, text: String) {
        let reasoning = std::mem::take(&mut self.reasoning);
        let reasoning = if role == "assistant" { reasoning } else { String::new() };
        self.messages.push(Message::new(role, text).with_reasoning(reasoning));
    }

    /// Adds to the assistant's reasoning before its next message.
    pub(crate) fn add_reasoning(&mut self, text: &str) {
        self.reasoning.push_str(text);
    }

    /// A call belongs to the assistant's message before it.
    pub(crate) fn add_call(&mut self, id: String, name: String, arguments: &Value) {
        let call = json!({
            "id": id, "type": "function", "function": {"name": name, "arguments": arguments},
        });
        self.names.insert(id, name);
        if self.messages.last().is_none_or(|last| last.role != "assistant") {
            let role = "assistant".to_owned();
            let message = Message { role, content: None, fields: Map::new() };
            self.messages.push(message.with_reasoning(std::mem::take(&mut self.reasoning)));
        }
        let Some(message) = self.messages.last_mut() else { return };
        let calls = message.fields.entry("tool_calls").or_insert_with(|| json!([]));
        if let Value::Array(calls) = calls {
            calls.push(call);
        }
    }

    pub(crate) fn add_result(&mut self, id: String, text: String) {
        let mut message = Message::new("tool", text);
        if let Some(name) = self.names.get(&id) {
            message.fields.insert("name".to_owned(), name.as_str().into());
        }
        message.fields.insert("tool_call_id".to_owned(), id.into());
        self.messages.push(message);
    }

    /// Whether the last message is a text of the assistant.
    pub(crate) fn ends_in_answer(&self) -> bool {
        self.messages.last().is_some_and(|last| {
            last.role == "assistant"
                && last.content.as_deref().is_some_and(|text| !text.is_empty())
                && !last.fields.contains_key("tool_calls")
        })
    }

    pub(crate) fn into_messages(self) -> Vec<Message> {
        let system = (!self.system.is_empty()).then(|| Message::system(self.system.join("\n\n")));
        system.into_iter().chain(self.messages).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_texts_come_first_and_calls_join_their_message() {
        let mut conversation = Conversation::default();
        conversation.add_system("a".to_owned());
        conversation.add("user", "b".to_owned());
        conversation.add_call("1".to_owned(), "f".to_owned(), &json!("{}"));
        conversation.add_call("2".to_owned(), "g".to_owned(), &json!({"x": 1}));
        assert!(!conversation.ends_in_answer());
        conversation.add_result("2".to_owned(), "c".to_owned());
        conversation.add_system("d".to_owned());
        conversation.add("assistant", "e".to_owned());
        assert!(conversation.ends_in_answer());
        let call = |id, name, arguments: Value| json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
        let calls = json!([call("1", "f", json!("{}")), call("2", "g", json!({"x": 1}))]);
        let expected = json!([
            {"role": "system", "content": "a\n\nd"},
            {"role": "user", "content": "b"},
            {"role": "assistant", "content": null, "tool_calls": calls},
            {"role": "tool", "content": "c", "name": "g", "tool_call_id": "2"},
            {"role": "assistant", "content": "e"},
        ]);
        assert_eq!(json!(conversation.into_messages()), expected);
    }
}
