//! Items of an input as messages of a conversation.

use serde_json::Value;
use setun::Message;
use tracing::debug;

use crate::{contents, conversation::Conversation, error::ApiError, fields::Fields};

/// The field of the items.
pub(super) const INPUT: &str = "input";

/// Parts of contents that are text, with the field that has it.
const TEXTS: [(&str, &str); 4] =
    [("input_text", "text"), ("output_text", "text"), ("text", "text"), ("refusal", "refusal")];

/// Takes the conversation of a request.
pub(super) fn read(
    fields: &mut Fields,
    instructions: Option<String>,
) -> Result<Vec<Message>, ApiError> {
    const EXPECTED: &str = "a string or a list of items";
    let mut conversation = Conversation::default();
    if let Some(instructions) = instructions {
        conversation.add_system(instructions);
    }
    match fields.take(INPUT).ok_or_else(|| ApiError::missing(INPUT, EXPECTED))? {
        Value::String(text) => conversation.add("user", text),
        Value::Array(list) if !list.is_empty() => {
            for item in Fields::of_list(INPUT, list)? {
                add_item(&mut conversation, item)?;
            }
        }
        Value::Array(_) => {
            return Err(ApiError::invalid(INPUT, "expected an item or more, found none"));
        }
        other => return Err(ApiError::wrong_type(INPUT, EXPECTED, &other)),
    }
    Ok(conversation.into_messages())
}

fn add_item(conversation: &mut Conversation, mut item: Fields) -> Result<(), ApiError> {
    match item.text("type")?.as_deref().unwrap_or("message") {
        "message" => add_message(conversation, item),
        "function_call" => {
            let id = item.required_text("call_id")?;
            let name = item.required_text("name")?;
            conversation.add_call(id, name, &contents::arguments(&mut item, "arguments")?);
            Ok(())
        }
        "function_call_output" => {
            let id = item.required_text("call_id")?;
            conversation.add_result(id, content(&mut item, "output")?);
            Ok(())
        }
        "item_reference" => {
            let reason = "the server keeps no items: send the item itself";
            Err(ApiError::unsupported(&item.name("type"), reason))
        }
        "reasoning" => {
            for field in ["content", "summary"] {
                let parts = item.objects(field)?.unwrap_or_default();
                for mut part in parts {
                    conversation.add_reasoning(&part.text("text")?.unwrap_or_default());
                }
            }
            Ok(())
        }
        // Thoughts that other servers have encrypted, and calls of tools that they ran themselves.
        other => {
            debug!(target: "setun_serve", kind = ?other, "an item is ignored");
            Ok(())
        }
    }
}

fn add_message(conversation: &mut Conversation, mut item: Fields) -> Result<(), ApiError> {
    let role = item.required_text("role")?;
    let text = content(&mut item, "content")?;
    match role.as_str() {
        "system" | "developer" => conversation.add_system(text),
        "user" | "assistant" => conversation.add(&role, text),
        other => {
            let reason = format!("expected user, assistant, system or developer, found {other:?}");
            return Err(ApiError::invalid(&item.name("role"), reason));
        }
    }
    Ok(())
}

fn content(item: &mut Fields, field: &str) -> Result<String, ApiError> {
    let expected = "a string or a list of parts";
    let missing = |item: &Fields| ApiError::missing(&item.name(field), expected);
    contents::take(item, field, &TEXTS)?.ok_or_else(|| missing(item))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn messages(body: &Value) -> Result<Value, ApiError> {
        let mut fields = Fields::read(body.to_string().as_bytes())?;
        Ok(json!(read(&mut fields, None)?))
    }

    /// A history as Codex sends it.
    #[test]
    fn items_are_messages_with_their_calls() {
        let input = json!([
            {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "a"}]},
            {"role": "user", "content": [
                {"type": "input_text", "text": "b"}, {"type": "input_text", "text": "c"},
            ]},
            {"type": "reasoning", "summary": [], "content": null, "encrypted_content": "x"},
            {"type": "reasoning", "summary": [],
             "content": [{"type": "reasoning_text", "text": "why"}]},
            {"type": "message", "role": "assistant", "id": "msg_1", "status": "completed",
             "content": [{"type": "output_text", "text": "d", "annotations": [], "logprobs": []}]},
            {"type": "function_call", "id": "fc_1", "call_id": "1", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "1", "output": "e"},
            {"role": "developer", "content": "g"},
        ]);
        let call =
            json!({"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}});
        let expected = json!([
            {"role": "system", "content": "a\n\ng"},
            {"role": "user", "content": "b\nc"},
            {"role": "assistant", "content": "d", "reasoning_content": "why", "tool_calls": [call]},
            {"role": "tool", "content": "e", "name": "f", "tool_call_id": "1"},
        ]);
        assert_eq!(messages(&json!({"input": input})), Ok(expected));
        let text = messages(&json!({"input": "a"}));
        assert_eq!(text, Ok(json!([{"role": "user", "content": "a"}])));
    }

    #[test]
    fn refusals_name_the_item_and_its_field() {
        let image = json!([{"type": "input_image", "image_url": "data:"}]);
        for (input, message) in [
            (json!(null), "input: expected a string or a list of items, found nothing"),
            (json!([]), "input: expected an item or more"),
            (json!(["a"]), "input[0]: expected an object, found a string"),
            (json!([{"role": "user"}]), "input[0].content: expected a string or a list of parts"),
            (json!([{"role": "tool", "content": ""}]), "input[0].role: expected user, assistant"),
            (
                json!([{"role": "user", "content": image}]),
                "input[0].content[0].type: not supported: expected text, found \\\"input_image",
            ),
            (
                json!([{"type": "function_call", "call_id": "1", "name": 3}]),
                "input[0].name: expected a string, found a number",
            ),
            (json!([{"type": "item_reference", "id": "1"}]), "input[0].type: not supported"),
        ] {
            let error = format!("{:?}", messages(&json!({"input": input})).expect_err(message));
            assert!(error.contains(message), "{error}");
        }
    }
}
