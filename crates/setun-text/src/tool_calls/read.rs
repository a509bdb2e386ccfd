//! JSON at the beginning of a text that may not be complete.

use serde_json::{Deserializer, Map, Value};

use super::ToolCall;

/// What a text begins with.
pub(super) enum Read {
    /// Calls, and their length in bytes.
    Calls(Vec<ToolCall>, usize),
    /// What may become calls when more text comes.
    Unfinished,
    /// Something else.
    Nothing,
}

impl Read {
    /// The same after this many bytes more.
    pub(super) fn shifted(self, before: usize) -> Self {
        match self {
            Self::Calls(calls, length) => Self::Calls(calls, before + length),
            other => other,
        }
    }
}

/// A call that is one JSON object.
pub(super) fn object(
    text: &str,
    ended: bool,
    call: impl FnOnce(Map<String, Value>) -> Option<ToolCall>,
) -> Read {
    value(text, '{', ended, |value| match value {
        Value::Object(map) => call(map).map(|call| vec![call]),
        _ => None,
    })
}

/// A list of calls, each a JSON object.
pub(super) fn array(
    text: &str,
    ended: bool,
    call: impl Fn(Map<String, Value>) -> Option<ToolCall>,
) -> Read {
    value(text, '[', ended, |value| match value {
        Value::Array(list) if !list.is_empty() => list
            .into_iter()
            .map(|value| match value {
                Value::Object(map) => call(map),
                _ => None,
            })
            .collect(),
        _ => None,
    })
}

fn value(
    text: &str,
    begins_with: char,
    ended: bool,
    calls: impl FnOnce(Value) -> Option<Vec<ToolCall>>,
) -> Read {
    let body = text.trim_start();
    if !(body.is_empty() || body.starts_with(begins_with)) {
        return Read::Nothing;
    }
    let closes = if begins_with == '{' { '}' } else { ']' };
    let mut values = Deserializer::from_str(body).into_iter::<Value>();
    // Nothing to read again and again while it cannot be complete.
    let found = body.contains(closes).then(|| values.next()).flatten();
    match found {
        Some(Ok(value)) => {
            let length = text.len() - body.len() + values.byte_offset();
            calls(value).map_or(Read::Nothing, |calls| Read::Calls(calls, length))
        }
        Some(Err(error)) if !error.is_eof() => Read::Nothing,
        _ if ended => Read::Nothing,
        _ => Read::Unfinished,
    }
}

/// A call in an object with its name in it. Arguments may be under either of two names, and may
/// be JSON in a string.
pub(super) fn named(mut object: Map<String, Value>, arguments: &str) -> Option<ToolCall> {
    let Value::String(name) = object.remove("name")? else { return None };
    let other = if arguments == "arguments" { "parameters" } else { "arguments" };
    let arguments = object.remove(arguments).or_else(|| object.remove(other));
    let arguments = match arguments {
        Some(Value::Object(map)) => map,
        Some(Value::String(text)) => serde_json::from_str(&text).ok()?,
        None => Map::new(),
        Some(_) => return None,
    };
    let id = object.remove("id").and_then(|id| id.as_str().map(str::to_owned));
    Some(ToolCall { name, arguments, id })
}
