//! Fields of a `tokenizer.json`, and errors that name them.

use serde_json::{Map, Value};

use crate::TextError;

/// A text in a field, of at most some bytes; empty if there is none.
pub(super) fn text_at_most<'a>(
    fields: &'a Map<String, Value>,
    (field, name): (&str, &str),
    most: usize,
) -> Result<&'a str, TextError> {
    let text = fields.get(name).and_then(Value::as_str).unwrap_or_default();
    match text.len() {
        bytes if bytes > most => Err(too_long(format!("{field}.{name}"), most, bytes)),
        _ => Ok(text),
    }
}

pub(super) fn too_long(field: String, most: usize, found: usize) -> TextError {
    refused(field, format!("at most {most} bytes"), format!("{found} bytes"))
}

pub(super) fn refused(
    field: impl Into<String>,
    expected: impl Into<String>,
    found: impl Into<String>,
) -> TextError {
    let (field, expected, found) = (field.into(), expected.into(), found.into());
    TextError::TokenizerField { field, expected, found }
}

/// What a value is, for a message: never a text of a file at its whole length.
pub(super) fn kind(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) => format!("`{}`", text.chars().take(40).collect::<String>()),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}
