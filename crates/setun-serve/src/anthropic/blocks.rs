//! Blocks of messages as messages of a conversation.

use serde_json::Value;

use crate::{
    contents::{self, refused},
    conversation::Conversation,
    error::ApiError,
    fields::Fields,
};

/// The blocks of contents that are texts alone.
const TEXTS: [(&str, &str); 1] = [("text", "text")];

/// What comes before the result of a call that failed.
const ERROR: &str = "Error: ";

/// Takes the system text and the messages of a request.
pub(super) fn read(fields: &mut Fields, field: &str) -> Result<Conversation, ApiError> {
    let mut conversation = Conversation::default();
    if let Some(system) = contents::take(fields, "system", &TEXTS)? {
        conversation.add_system(system);
    }
    let messages = fields.objects(field)?;
    let messages = messages.ok_or_else(|| ApiError::missing(field, "a list of messages"))?;
    if messages.is_empty() {
        return Err(ApiError::invalid(field, "expected a message or more, found none"));
    }
    for message in messages {
        add_message(&mut conversation, message)?;
    }
    Ok(conversation)
}

fn add_message(conversation: &mut Conversation, mut message: Fields) -> Result<(), ApiError> {
    let role = message.required_text("role")?;
    if role == "system" {
        conversation
            .add_system(contents::take(&mut message, "content", &TEXTS)?.unwrap_or_default());
        return Ok(());
    }
    if role != "user" && role != "assistant" {
        let reason = format!("expected user, assistant or system, found {role:?}");
        return Err(ApiError::invalid(&message.name("role"), reason));
    }
    let name = message.name("content");
    match message.take("content") {
        Some(Value::String(text)) => conversation.add(&role, text),
        Some(Value::Array(list)) => add_blocks(conversation, &role, Fields::of_list(&name, list)?)?,
        Some(other) => return Err(ApiError::wrong_type(&name, EXPECTED, &other)),
        None => return Err(ApiError::missing(&name, EXPECTED)),
    }
    Ok(())
}

/// A content, in words.
const EXPECTED: &str = "a string or a list of blocks";

fn add_blocks(
    conversation: &mut Conversation,
    role: &str,
    blocks: Vec<Fields>,
) -> Result<(), ApiError> {
    let mut texts = vec![];
    let is_user = role == "user";
    for mut block in blocks {
        let kind = block.required_text("type")?;
        if kind == "text" {
            texts.push(block.required_text("text")?);
            continue;
        }
        add_texts(conversation, role, &mut texts);
        match kind.as_str() {
            "tool_use" if !is_user => {
                let input = contents::arguments(&mut block, "input")?;
                let (id, name) = (block.required_text("id")?, block.required_text("name")?);
                conversation.add_call(id, name, &input);
            }
            "tool_result" if is_user => {
                let id = block.required_text("tool_use_id")?;
                conversation.add_result(id, result(&mut block)?);
            }
            "thinking" if !is_user => {
                conversation.add_reasoning(&block.text("thinking")?.unwrap_or_default());
            }
            "redacted_thinking" if !is_user => {} // no model here has written it
            other => return Err(refused(&block, other)),
        }
    }
    add_texts(conversation, role, &mut texts);
    Ok(())
}

/// Texts that follow each other are one message.
fn add_texts(conversation: &mut Conversation, role: &str, texts: &mut Vec<String>) {
    if !texts.is_empty() {
        conversation.add(role, std::mem::take(texts).join("\n"));
    }
}

fn result(block: &mut Fields) -> Result<String, ApiError> {
    let text = contents::take(block, "content", &TEXTS)?.unwrap_or_default();
    let is_error = block.flag("is_error")?.unwrap_or_default();
    Ok(if is_error { format!("{ERROR}{text}") } else { text })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn messages(body: &Value) -> Result<Value, ApiError> {
        let mut fields = Fields::read(body.to_string().as_bytes())?;
        Ok(json!(read(&mut fields, "messages")?.into_messages()))
    }

    /// A history as Claude Code sends it.
    #[test]
    fn blocks_are_messages_with_their_calls() {
        let cached = json!({"type": "ephemeral"});
        let body = json!({
            "system": [
                {"type": "text", "text": "a"},
                {"type": "text", "text": "b", "cache_control": cached},
            ],
            "messages": [
                {"role": "user", "content": [
                    {"type": "text", "text": "c"},
                    {"type": "text", "text": "d", "cache_control": cached},
                ]},
                {"role": "assistant", "content": [
                    {"type": "thinking", "thinking": "x", "signature": "y"},
                    {"type": "text", "text": "e"},
                    {"type": "tool_use", "id": "1", "name": "f", "input": {"x": 1}},
                    {"type": "tool_use", "id": "2", "name": "g", "input": {}},
                ]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "1", "content": "h"},
                    {"type": "tool_result", "tool_use_id": "2", "is_error": true,
                     "content": [{"type": "text", "text": "i"}]},
                    {"type": "text", "text": "j"},
                ]},
                {"role": "system", "content": "k"},
                {"role": "assistant", "content": "l"},
            ],
        });
        let call = |id, name, arguments: Value| {
            json!({"id": id, "type": "function",
                   "function": {"name": name, "arguments": arguments}})
        };
        let calls = json!([call("1", "f", json!({"x": 1})), call("2", "g", json!({}))]);
        let expected = json!([
            {"role": "system", "content": "a\nb\n\nk"},
            {"role": "user", "content": "c\nd"},
            {"role": "assistant", "content": "e", "reasoning_content": "x", "tool_calls": calls},
            {"role": "tool", "content": "h", "name": "f", "tool_call_id": "1"},
            {"role": "tool", "content": "Error: i", "name": "g", "tool_call_id": "2"},
            {"role": "user", "content": "j"},
            {"role": "assistant", "content": "l"},
        ]);
        assert_eq!(messages(&body), Ok(expected));
    }

    #[test]
    fn refusals_name_the_block_and_its_field() {
        let block = |block: Value| json!([{"role": "user", "content": [block]}]);
        let image = json!({"type": "image", "source": {}});
        let result = json!({"type": "tool_result", "tool_use_id": "1", "content": [image]});
        for (messages_of, message) in [
            (json!(null), "messages: expected a list of messages"),
            (json!([]), "messages: expected a message or more"),
            (json!([{"role": "tool", "content": ""}]), "messages[0].role: expected user"),
            (json!([{"role": "user"}]), "messages[0].content: expected a string or a list"),
            (block(image.clone()), "messages[0].content[0].type: not supported: expected text"),
            (block(result), "messages[0].content[0].content[0].type: not supported"),
            (block(json!({"type": "tool_use"})), "messages[0].content[0].type: not supported"),
            (block(json!({"type": "text"})), "messages[0].content[0].text: expected a string"),
        ] {
            let error = messages(&json!({"messages": messages_of})).expect_err(message);
            assert!(format!("{error:?}").contains(message), "{error:?}");
        }
    }
}
