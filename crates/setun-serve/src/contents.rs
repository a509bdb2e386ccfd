//! Contents that are a text or a list of parts.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use setun::Tool;

use crate::{error::ApiError, excerpt::excerpt, fields::Fields};

/// Takes a content: a text, or parts that each begin a line. `texts` names the types of parts, each
/// with the field of its text.
pub(crate) fn take(
    fields: &mut Fields,
    field: &str,
    texts: &[(&str, &str)],
) -> Result<Option<String>, ApiError> {
    let parts = match fields.take(field) {
        None => return Ok(None),
        Some(Value::String(text)) => return Ok(Some(text)),
        Some(Value::Array(list)) => Fields::of_list(&fields.name(field), list)?,
        Some(other) => {
            return Err(fields.wrong_type(field, "a string or a list of parts", &other));
        }
    };
    let text = |mut part: Fields| {
        let kind = part.required_text("type")?;
        match texts.iter().find(|(known, _)| *known == kind) {
            Some((_, field)) => part.required_text(field),
            None => Err(refused(&part, &kind)),
        }
    };
    let texts = parts.into_iter().map(text).collect::<Result<Vec<_>, _>>()?;
    Ok(Some(texts.join("\n")))
}

/// The refusal of a part that is no text.
pub(crate) fn refused(part: &Fields, kind: &str) -> ApiError {
    ApiError::unsupported(&part.name("type"), &format!("expected text, found {kind:?}"))
}

/// The arguments of a call in a history; none where clients write none.
pub(crate) fn arguments(call: &mut Fields, field: &str) -> Result<Value, ApiError> {
    match call.take(field) {
        None => Ok(json!({})),
        Some(Value::String(text)) if text.trim().is_empty() => Ok(json!({})),
        Some(given @ (Value::String(_) | Value::Object(_))) => Ok(given),
        Some(other) => Err(call.wrong_type(field, "an object or its JSON text", &other)),
    }
}

/// Warns of a tool that is not offered to the model.
pub(crate) fn ignore_tool(fields: &mut Fields, tool: &Fields, kind: &str) {
    let (name, kind) = (tool.name("type"), excerpt(kind));
    fields
        .warn(format!("`{name}` is `{kind}`: only functions are offered, and the tool is ignored"));
}

/// A function whose name and schema are fields of the tool. The name of the latter is added.
pub(crate) fn tool(
    fields: &mut Fields,
    schema: &str,
    schema_fields: &mut BTreeMap<String, String>,
) -> Result<Tool, ApiError> {
    let mut tool = Tool::new(fields.required_text("name")?);
    schema_fields.insert(tool.name.clone(), fields.name(schema));
    tool.description = fields.text("description")?;
    tool.parameters = fields.object(schema)?.map(Fields::into_map);
    tool.strict = fields.flag("strict")?.unwrap_or_default();
    Ok(tool)
}
