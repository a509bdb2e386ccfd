//! Messages and tools of a conversation.

use serde_json::{Map, Value};
use setun::{GenerateOptions, Message, Tool, text::TextError};

use crate::{error::ApiError, fields::Fields, tool_choice};

/// The field of the messages.
const FIELD: &str = "messages";

/// Takes the messages of a request. `developer` is another name of `system`.
pub(crate) fn read(fields: &mut Fields) -> Result<Vec<Message>, ApiError> {
    let list = fields.list(FIELD)?.ok_or_else(|| ApiError::missing(FIELD, "a list of messages"))?;
    if list.is_empty() {
        return Err(ApiError::invalid(FIELD, "expected a message or more, found none"));
    }
    read_list(list, |_, message| Ok(message))
}

/// Refuses messages beside another prompt.
pub(crate) fn refuse_beside(fields: &Fields, prompt: &str) -> Result<(), ApiError> {
    match fields.get(FIELD).and(fields.get(prompt)) {
        Some(_) => Err(ApiError::invalid(FIELD, format!("expected none beside {prompt}"))),
        None => Ok(()),
    }
}

/// Reads messages, each of which is first brought into the shape of the `OpenAI` API.
pub(crate) fn read_list(
    list: Vec<Value>,
    translate: impl Fn(&str, Map<String, Value>) -> Result<Map<String, Value>, ApiError>,
) -> Result<Vec<Message>, ApiError> {
    let objects = list.into_iter().enumerate().map(|(index, value)| match value {
        Value::Object(message) => {
            let message = translate(&format!("{FIELD}[{index}]"), message)?;
            prepared(index, message)
        }
        other => {
            let name = format!("{FIELD}[{index}]");
            Err(ApiError::wrong_type(&name, "an object", &other))
        }
    });
    let messages = objects.collect::<Result<Vec<_>, _>>()?;
    Message::from_json(messages).map_err(|error| match error {
        TextError::Message { index, fault } => {
            ApiError::invalid(&format!("{FIELD}[{index}]"), fault.to_string())
        }
        error => ApiError::invalid(FIELD, error.to_string()),
    })
}

/// A message without what clients send back of an answer and templates do not know.
fn prepared(index: usize, mut message: Map<String, Value>) -> Result<Map<String, Value>, ApiError> {
    message.retain(|name, value| name == "content" || !value.is_null());
    if message.get("role").is_some_and(|role| role == "developer") {
        message.insert("role".to_owned(), "system".into());
    }
    let refusal = message.shift_remove("refusal");
    if let Some(refusal) = refusal.filter(|_| message.get("content").is_none_or(Value::is_null)) {
        message.insert("content".to_owned(), refusal);
    }
    message.shift_remove("annotations");
    for field in ["audio", "function_call"] {
        if message.contains_key(field) {
            let name = format!("{FIELD}[{index}].{field}");
            return Err(ApiError::unsupported(&name, "use text and tool_calls"));
        }
    }
    Ok(message)
}

/// Takes the tools of a request and their choice.
pub(crate) fn read_tools(
    fields: &mut Fields,
    mut options: GenerateOptions,
) -> Result<GenerateOptions, ApiError> {
    for (field, reason) in [("functions", "use tools"), ("function_call", "use tool_choice")] {
        if fields.take(field).is_some() {
            return Err(ApiError::unsupported(field, reason));
        }
    }
    if let Some(tools) = fields.list("tools")? {
        options.tools = Tool::from_json(tools).map_err(|error| refused_tool(&error))?;
    }
    if let Some(choice) = fields.take("tool_choice") {
        let choice = tool_choice::read(&choice, &tool_choice::NESTED, &mut options.tools)?;
        options.tool_choice = Some(choice);
    }
    Ok(options)
}

fn refused_tool(error: &TextError) -> ApiError {
    match error {
        TextError::Tool { index, field, expected, found } => {
            let reason = format!("expected {expected}, found {found}");
            ApiError::invalid(&format!("tools[{index}].{field}"), reason)
        }
        error => ApiError::invalid("tools", error.to_string()),
    }
}
