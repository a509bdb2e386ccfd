//! The size of a specification, found without recursion and before it is copied.

use serde_json::Value;

use crate::limits::{Exceeded, at_most};
use crate::{GrammarError, GrammarLimits, GrammarSpec};

/// How deep JSON values may lie in each other: four times as deep as the reader of JSON texts goes.
const MAX_NESTING: usize = 512;

/// Refuses a specification that is larger than its limit.
pub(crate) fn check(spec: &GrammarSpec, limits: &GrammarLimits) -> Result<(), GrammarError> {
    match spec {
        GrammarSpec::JsonSchema(schema) => check_json(schema, limits)?,
        GrammarSpec::Tools(_) | GrammarSpec::JsonObject => {} // `ToolGrammar::check` looks at tools
        GrammarSpec::Choice(choices) => {
            let bytes = choices.iter().map(|choice| choice.len() + 1).sum::<usize>();
            at_most("bytes of the choices", limits.text, bytes)?;
        }
        GrammarSpec::Regex(text) | GrammarSpec::Lark(text) | GrammarSpec::Gbnf(text) => {
            at_most("bytes of the text", limits.text, text.len())?;
        }
    }
    Ok(())
}

/// Refuses a document that is too deep for recursion, or too large.
pub(crate) fn check_json(document: &Value, limits: &GrammarLimits) -> Result<(), Exceeded> {
    let mut open = vec![(document, 1)];
    let mut bytes = 0_usize;
    while let Some((value, depth)) = open.pop() {
        at_most("JSON values in each other", MAX_NESTING, depth)?;
        bytes += match value {
            Value::Array(list) => {
                open.extend(list.iter().map(|value| (value, depth + 1)));
                2
            }
            Value::Object(map) => {
                open.extend(map.values().map(|value| (value, depth + 1)));
                2 + map.keys().map(|name| name.len() + 4).sum::<usize>()
            }
            Value::String(text) => text.len() + 3,
            Value::Null | Value::Bool(_) | Value::Number(_) => 2,
        };
        at_most("bytes of the schema", limits.text, bytes)?;
    }
    Ok(())
}
