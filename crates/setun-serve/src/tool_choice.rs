//! The choice of tools in the APIs of `OpenAI`.

use serde_json::Value;
use setun::{Tool, ToolChoice};

use crate::error::ApiError;

const EXPECTED: &str = "expected none, auto, required, a function by its name or allowed_tools";

/// Where an API has the parts of a choice.
pub(crate) struct Shape {
    /// The object with the name of a function; none of another tool.
    function: fn(&Value) -> Option<&Value>,
    /// The object with the tools that are allowed.
    allowed: fn(&Value) -> &Value,
}

/// In chats each is an object of its own.
pub(crate) const NESTED: Shape = Shape {
    function: |one| one.get("function").filter(|_| one["type"] == "function"),
    allowed: |choice| &choice["allowed_tools"],
};

/// In responses there are none.
pub(crate) const FLAT: Shape =
    Shape { function: |one| one.is_object().then_some(one), allowed: |choice| choice };

/// Reads a choice. A choice among some of the tools offers no others.
pub(crate) fn read(
    value: &Value,
    shape: &Shape,
    tools: &mut Vec<Tool>,
) -> Result<ToolChoice, ApiError> {
    let unknown = || ApiError::invalid("tool_choice", EXPECTED);
    let name = |one| (shape.function)(one).and_then(|it| it["name"].as_str()).ok_or_else(unknown);
    match value["type"].as_str() {
        Some("function") => Ok(ToolChoice::Function(name(value)?.to_owned())),
        Some("allowed_tools") => {
            let allowed = (shape.allowed)(value);
            let names = allowed["tools"].as_array().ok_or_else(unknown)?.iter().map(name);
            let names: Vec<_> = names.collect::<Result<_, _>>()?;
            tools.retain(|tool| names.contains(&&*tool.name));
            ToolChoice::from_json(&allowed["mode"]).ok_or_else(unknown)
        }
        Some(_) => Err(unknown()),
        None => value.as_str().and_then(|_| ToolChoice::from_json(value)).ok_or_else(unknown),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn allowed_tools_are_functions() {
        let choose = |one: Value, shape| {
            let among = json!({"type": "allowed_tools", "mode": "auto", "tools": [one],
                "allowed_tools": {"mode": "auto", "tools": [one]}});
            let mut tools = vec![Tool::new("f"), Tool::new("g")];
            read(&among, shape, &mut tools).map(|_| tools.len()).ok()
        };
        let nested = |kind| json!({"type": kind, "function": {"name": "f"}});
        assert_eq!(choose(nested("function"), &NESTED), Some(1));
        assert_eq!(choose(nested("mcp"), &NESTED), None);
        assert_eq!(choose(json!({"function": {"name": "f"}}), &NESTED), None);
        assert_eq!(choose(json!({"type": "function", "name": "f"}), &FLAT), Some(1));
        assert_eq!(choose(json!({"name": "f"}), &FLAT), Some(1));
    }
}
