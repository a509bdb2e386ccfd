//! Options of a row: a JSON object with the names that the command and the server have.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::{Map, Value};
use setun::{
    Engine, GenerateOptions, GrammarSpec,
    text::{OptionKind, OptionSpec, OptionValue},
};

use crate::error::Error;

/// Constraints, of which a row has one at most.
const CONSTRAINTS: [&str; 6] = ["json_schema", "json_object", "regex", "choice", "lark", "gbnf"];

/// Variables of the chat template.
const TEMPLATE_VARIABLES: &str = "chat_template_kwargs";

/// Options that change nothing in a result, and those with which it depends on the time.
const LEFT_OUT: [&str; 6] =
    ["logprobs", "top_logprobs", "prompt_logprobs", "prompt_progress", "timeout", "queue_timeout"];

/// Reads options and compiles their constraint.
pub(crate) fn read(engine: &Engine, text: &str) -> Result<GenerateOptions, Error> {
    let fields: Map<String, Value> = serde_json::from_str(text)
        .map_err(|error| Error::Row(format!("options: expected a JSON object: {error}")))?;
    let (mut options, mut constraint) = (GenerateOptions::new(), None);
    for (name, value) in fields {
        if CONSTRAINTS.contains(&name.as_str()) {
            if let Some((other, _)) = constraint.replace((name.clone(), spec(&name, value)?)) {
                return Err(wrong(&name, format!("given beside `{other}`, expected one of them")));
            }
        } else if name == TEMPLATE_VARIABLES {
            let Value::Object(variables) = value else {
                return Err(wrong(&name, format!("{value}, expected an object")));
            };
            options = options.chat_template_kwargs(variables);
        } else {
            set(&mut options, &name, &value)?;
        }
    }
    options.check()?;
    let Some((_, spec)) = constraint else { return Ok(options) };
    Ok(options.constraint(engine.grammar(&spec)?))
}

fn set(options: &mut GenerateOptions, name: &str, value: &Value) -> Result<(), Error> {
    if !specs().any(|spec| spec.name == name) {
        let names: BTreeSet<_> = specs().map(|spec| spec.name).chain(CONSTRAINTS).collect();
        let names = names.into_iter().collect::<Vec<_>>().join(", ");
        return Err(Error::Row(format!("options: `{name}` is unknown, expected one of {names}")));
    }
    let read = OptionValue::deserialize(value).map_err(|error| wrong(name, error.to_string()))?;
    options.set(name, &read).map_err(|error| Error::Row(error.to_string()))
}

fn specs() -> impl Iterator<Item = &'static OptionSpec> {
    let is_read = |spec: &&OptionSpec| {
        !matches!(spec.kind, OptionKind::Structured(_)) && !LEFT_OUT.contains(&spec.name)
    };
    GenerateOptions::SPECS.iter().filter(is_read)
}

/// The constraint of this name.
fn spec(name: &str, value: Value) -> Result<GrammarSpec, Error> {
    let spec = match (name, value) {
        ("json_schema", Value::String(text)) => return json_schema(&text),
        ("json_schema", schema) => GrammarSpec::JsonSchema(schema),
        ("json_object", Value::Bool(true)) => GrammarSpec::JsonObject,
        ("json_object", value) => return Err(wrong(name, format!("{value}, expected true"))),
        ("choice", value) => match Vec::<String>::deserialize(&value) {
            Ok(texts) if !texts.is_empty() => GrammarSpec::Choice(texts),
            _ => return Err(wrong(name, format!("{value}, expected a list of strings"))),
        },
        ("regex", Value::String(text)) => GrammarSpec::Regex(text),
        ("lark", Value::String(text)) => GrammarSpec::Lark(text),
        ("gbnf", Value::String(text)) => GrammarSpec::Gbnf(text),
        (_, value) => return Err(wrong(name, format!("{value}, expected a string"))),
    };
    Ok(spec)
}

fn json_schema(text: &str) -> Result<GrammarSpec, Error> {
    GrammarSpec::json_schema(text).map_err(|error| wrong("json_schema", error.to_string()))
}

fn wrong(name: &str, found: impl std::fmt::Display) -> Error {
    Error::Row(format!("option `{name}` is {found}"))
}
