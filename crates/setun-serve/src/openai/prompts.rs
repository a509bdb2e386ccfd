//! Prompts as texts, tokens, and lists of both.

use serde_json::Value;
use setun::Prompt;

use crate::{
    error::ApiError,
    fields::{Fields, whole},
};

/// Prompts, in words.
const EXPECTED: &str = "a string, a list of strings, token ids or a list of lists of token ids";

/// Takes the prompts of a field, one or more.
pub(crate) fn read(fields: &mut Fields, field: &str) -> Result<Vec<Prompt>, ApiError> {
    let value = fields.take(field).ok_or_else(|| ApiError::missing(field, EXPECTED))?;
    match value {
        Value::String(text) => Ok(vec![Prompt::Text(text)]),
        Value::Array(list) if list.first().is_some_and(Value::is_number) => {
            Ok(vec![Prompt::Tokens(tokens_of(field, &list)?)])
        }
        Value::Array(list) if !list.is_empty() => {
            let prompts = list.into_iter().enumerate();
            prompts.map(|(index, value)| prompt(&format!("{field}[{index}]"), value)).collect()
        }
        Value::Array(_) => Err(ApiError::invalid(field, format!("expected {EXPECTED}, found []"))),
        other => Err(ApiError::wrong_type(field, EXPECTED, &other)),
    }
}

fn prompt(name: &str, value: Value) -> Result<Prompt, ApiError> {
    match value {
        Value::String(text) => Ok(Prompt::Text(text)),
        Value::Array(list) => Ok(Prompt::Tokens(tokens_of(name, &list)?)),
        other => Err(ApiError::wrong_type(name, "a string or token ids", &other)),
    }
}

/// Token ids of a list.
pub(crate) fn tokens_of(name: &str, list: &[Value]) -> Result<Vec<u32>, ApiError> {
    let token = |(index, value): (usize, &Value)| {
        let token = whole(value).and_then(|token| u32::try_from(token).ok());
        token.ok_or_else(|| ApiError::wrong_type(&format!("{name}[{index}]"), "a token id", value))
    };
    list.iter().enumerate().map(token).collect()
}
