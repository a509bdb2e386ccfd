//! JSON as values of the template language, in the order of the file.

use minijinja::Value;
use serde_json::Map;

use crate::Message;

/// Names of a message's reasoning: the one in templates, then those of chat APIs.
const REASONING: [&str; 3] = ["reasoning_content", "reasoning", "thinking"];

/// A message with its role and content first; `absent` is the content of one that has none. Its
/// reasoning has the name that most templates know, too.
pub(super) fn message(message: &Message, absent: &Value) -> Value {
    let content = message.content.as_deref().map_or_else(|| absent.clone(), Value::from);
    let own = [("role", Value::from(message.role.as_str())), ("content", content)];
    let fields = message.fields.iter().map(|(key, field)| (key.as_str(), value(field)));
    let mut named = REASONING.iter().map(|name| message.fields.get(*name));
    let is_known = named.next().is_some_and(|known| known.is_some());
    let other = named.flatten().find_map(|other| other.as_str()).filter(|_| !is_known);
    let reasoning = other.map(|text| (REASONING[0], Value::from(text)));
    Value::from_pairs(own.into_iter().chain(reasoning).chain(fields))
}

/// An object.
pub(super) fn map(map: &Map<String, serde_json::Value>) -> Value {
    Value::from_pairs(map.iter().map(|(key, entry)| (key.as_str(), value(entry))))
}

/// An array.
pub(super) fn list(list: &[serde_json::Value]) -> Value {
    list.iter().map(value).collect()
}

fn value(json: &serde_json::Value) -> Value {
    match json {
        serde_json::Value::Null => Value::from(()),
        serde_json::Value::Bool(truth) => Value::from(*truth),
        serde_json::Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(integer), _) => Value::from(integer),
            (None, Some(integer)) => Value::from(integer),
            (None, None) => Value::from(number.as_f64().unwrap_or(f64::NAN)),
        },
        serde_json::Value::String(text) => Value::from(text.as_str()),
        serde_json::Value::Array(items) => list(items),
        serde_json::Value::Object(entries) => map(entries),
    }
}
