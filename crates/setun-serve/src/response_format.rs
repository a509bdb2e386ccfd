//! The format that a text is to have.

use std::time::Duration;

use serde_json::{Value, json};
use setun::{Engine, EngineError, GrammarSpec, SharedConstraint, grammar::Interrupt};

use crate::{error::ApiError, fields::Fields};

/// The field of a request.
pub(crate) const FIELD: &str = "response_format";

/// The types, as an error lists them.
const TYPES: &str = "text, json_object, json_schema, grammar or choice";

/// Takes the format; none for any text. `grammar` and `choice` are setun's additions.
pub(crate) fn read(fields: &mut Fields) -> Result<Option<GrammarSpec>, ApiError> {
    read_field(fields, FIELD, "json_schema")
}

/// Takes the format of a field. `required` is the part of it that has to have the schema.
pub(crate) fn read_field(
    fields: &mut Fields,
    field: &str,
    required: &str,
) -> Result<Option<GrammarSpec>, ApiError> {
    let Some(mut format) = fields.object(field)? else { return Ok(None) };
    let name = format.name("type");
    let kind = format.text("type")?.ok_or_else(|| ApiError::missing(&name, TYPES))?;
    Ok(match kind.as_str() {
        "text" => None,
        "json_object" => Some(match format.take("schema") {
            None => GrammarSpec::JsonObject, // a schema is llama-server's addition
            Some(schema @ Value::Object(_)) => GrammarSpec::JsonSchema(schema),
            Some(other) => return Err(format.wrong_type("schema", "an object", &other)),
        }),
        "json_schema" => Some(schema(&mut format, required)?),
        "grammar" => Some(grammar(&mut format)?),
        "choice" => {
            let missing = ApiError::missing(&format.name("choices"), "a list of strings");
            Some(GrammarSpec::Choice(choices(&mut format, "choices")?.ok_or(missing)?))
        }
        other => {
            let reason = format!("expected {TYPES}, found {other:?}");
            return Err(ApiError::invalid(&name, reason));
        }
    })
}

/// Compiles a format, in the time that the request has.
pub(crate) fn compile(
    engine: &Engine,
    spec: &GrammarSpec,
    timeout: Option<Duration>,
) -> Result<SharedConstraint, EngineError> {
    match timeout {
        Some(time) => engine.compile_grammar(spec, &Interrupt::new().within(time)),
        None => engine.grammar(spec),
    }
}

/// The schema, in an object with its name as the `OpenAI` API has it, or beside the type.
fn schema(format: &mut Fields, required: &str) -> Result<GrammarSpec, ApiError> {
    let name = format.name(required);
    let described = format.object("json_schema")?;
    let is_described = described.is_some();
    let mut fields = described.unwrap_or_else(|| std::mem::take(format));
    fields.text("name")?;
    let open_objects = fields.flag("open_objects")?.unwrap_or(false);
    let schema = match fields.take("schema") {
        Some(schema @ (Value::Object(_) | Value::Bool(true))) => schema,
        Some(other) => return Err(fields.wrong_type("schema", "an object", &other)),
        None if is_described => json!({"type": "object"}),
        None => return Err(ApiError::missing(&name, "an object")),
    };
    let spec = GrammarSpec::JsonSchema(schema);
    Ok(if open_objects { spec.with_open_objects() } else { spec })
}

fn grammar(format: &mut Fields) -> Result<GrammarSpec, ApiError> {
    let name = format.name("definition");
    let definition = format.text("definition")?;
    let definition = definition.ok_or_else(|| ApiError::missing(&name, "a string"))?;
    match format.text("syntax")?.as_deref() {
        Some("regex") => Ok(GrammarSpec::Regex(definition)),
        Some("lark") => Ok(GrammarSpec::Lark(definition)),
        Some("gbnf") => Ok(GrammarSpec::Gbnf(definition)),
        _ => Err(ApiError::invalid(&format.name("syntax"), "expected regex, lark or gbnf")),
    }
}

/// Takes texts of which one is to come.
pub(crate) fn choices(fields: &mut Fields, field: &str) -> Result<Option<Vec<String>>, ApiError> {
    let name = fields.name(field);
    let Some(list) = fields.list(field)? else { return Ok(None) };
    if list.is_empty() {
        return Err(ApiError::invalid(&name, "expected one or more strings, found none"));
    }
    let text = |value| match value {
        Value::String(text) => Ok(text),
        other => Err(ApiError::wrong_type(&name, "a list of strings", &other)),
    };
    list.into_iter().map(text).collect::<Result<_, _>>().map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format(value: &Value) -> Result<Option<GrammarSpec>, ApiError> {
        let body = json!({"response_format": value}).to_string();
        read(&mut Fields::read(body.as_bytes())?)
    }

    #[test]
    fn formats_are_grammars() {
        let schema = json!({"type": "integer"});
        for (value, expected) in [
            (json!(null), None),
            (json!({"type": "text"}), None),
            (json!({"type": "json_object"}), Some(GrammarSpec::JsonObject)),
            (
                json!({"type": "json_object", "schema": schema}),
                Some(GrammarSpec::JsonSchema(schema.clone())),
            ),
            (
                json!({"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}),
                Some(GrammarSpec::JsonSchema(schema.clone())),
            ),
            (
                json!({"type": "json_schema", "schema": schema, "open_objects": true}),
                Some(GrammarSpec::JsonSchema(schema.clone()).with_open_objects()),
            ),
            (
                json!({"type": "grammar", "syntax": "regex", "definition": "a+"}),
                Some(GrammarSpec::Regex("a+".to_owned())),
            ),
            (
                json!({"type": "choice", "choices": ["a", "b"]}),
                Some(GrammarSpec::Choice(vec!["a".to_owned(), "b".to_owned()])),
            ),
        ] {
            assert_eq!(format(&value), Ok(expected), "{value}");
        }
    }

    #[test]
    fn faults_name_the_field_with_its_path() {
        for (value, message) in [
            (json!("json_object"), "response_format: expected an object"),
            (json!({"type": "xml"}), "response_format.type: expected text, json_object"),
            (json!({"type": "json_schema"}), "response_format.json_schema: expected an object"),
            (
                json!({"type": "json_schema", "json_schema": {"schema": 3}}),
                "response_format.json_schema.schema: expected an object, found a number",
            ),
            (json!({"type": "choice", "choices": [1]}), "response_format.choices: expected a list"),
        ] {
            let error = format!("{:?}", format(&value).expect_err(message));
            assert!(error.contains(message), "{error}");
        }
    }
}
