//! Options of a generation in JSON.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::{Map, Value};
use setun_engine::{Engine, GenerateOptions};
use setun_grammar::GrammarSpec;
use setun_text::{OptionKind, OptionSpec, OptionValue};

use crate::error::Error;

/// Constraints, of which a text has one at most.
const CONSTRAINTS: [&str; 6] = ["json_schema", "json_object", "regex", "choice", "lark", "gbnf"];

/// Whether objects of `json_schema` may have properties that it does not list.
const OPEN_OBJECTS: &str = "open_objects";

/// Variables of the chat template.
const TEMPLATE_VARIABLES: &str = "chat_template_kwargs";

/// Reads options with the names that the command and the server have, and compiles the constraint
/// among them: `json_schema`, with `open_objects` or without, `json_object`, `regex`, `choice`,
/// `lark` or `gbnf`. Those of `left_out` are unknown.
///
/// ```no_run
/// use setun::{Engine, Model, options_from_json};
///
/// let engine = Engine::builder(Model::open("models/bitnet-b1.58-2B-4T")?).build()?;
/// let fields = serde_json::from_str(r#"{"max_tokens": 4, "choice": ["yes", "no"]}"#)?;
/// let options = options_from_json(&engine, fields, &["timeout"])?;
/// println!("{}", engine.complete("Is 3 odd?", options)?.text);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// [`Error::Option`] for a name that is unknown and a value of another type, the engine's own for
/// one out of its range and for a constraint that cannot be followed.
pub fn options_from_json(
    engine: &Engine,
    fields: Map<String, Value>,
    left_out: &[&str],
) -> Result<GenerateOptions, Error> {
    let (mut options, mut constraint) = (GenerateOptions::new(), None);
    let mut open_objects = false;
    for (name, value) in fields {
        if CONSTRAINTS.contains(&name.as_str()) {
            if let Some((other, _)) = constraint.replace((name.clone(), spec(&name, value)?)) {
                let reason = format!("is given beside `{other}`, expected one of them");
                return Err(Error::Option { name, reason });
            }
        } else if name == OPEN_OBJECTS {
            let found = || wrong(&name, format!("{value}, expected true or false"));
            open_objects = value.as_bool().ok_or_else(found)?;
        } else if name == TEMPLATE_VARIABLES {
            let Value::Object(variables) = value else {
                return Err(wrong(&name, format!("{value}, expected an object")));
            };
            options = options.chat_template_kwargs(variables);
        } else {
            set(&mut options, &name, &value, left_out)?;
        }
    }
    options.check()?;
    let Some((_, spec)) = constraint else { return Ok(options) };
    let spec = if open_objects { spec.with_open_objects() } else { spec };
    Ok(options.constraint(engine.grammar(&spec)?))
}

fn set(
    options: &mut GenerateOptions,
    name: &str,
    value: &Value,
    left_out: &[&str],
) -> Result<(), Error> {
    let specs = || specs().filter(|spec| !left_out.contains(&spec.name));
    if !specs().any(|spec| spec.name == name) {
        let names: BTreeSet<_> = specs()
            .map(|spec| spec.name)
            .chain(CONSTRAINTS)
            .chain([OPEN_OBJECTS, TEMPLATE_VARIABLES])
            .collect();
        let names = names.into_iter().collect::<Vec<_>>().join(", ");
        return Err(wrong(name, format!("unknown, expected one of {names}")));
    }
    let read = OptionValue::deserialize(value).map_err(|error| wrong(name, error))?;
    Ok(options.set(name, &read)?)
}

fn specs() -> impl Iterator<Item = &'static OptionSpec> {
    let is_read = |spec: &&OptionSpec| !matches!(spec.kind, OptionKind::Structured(_));
    GenerateOptions::SPECS.iter().filter(is_read)
}

/// The constraint of this name.
fn spec(name: &str, value: Value) -> Result<GrammarSpec, Error> {
    let spec = match (name, value) {
        ("json_schema", Value::String(text)) => {
            GrammarSpec::json_schema(&text).map_err(|error| wrong(name, error))?
        }
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

fn wrong(name: &str, found: impl std::fmt::Display) -> Error {
    Error::Option { name: name.to_owned(), reason: format!("is {found}") }
}
