//! Methods that texts, lists and maps have in Python, each with what it costs.

use minijinja::value::ValueKind;
use minijinja::{Error, State, Value};
use minijinja_contrib::pycompat::unknown_method_callback;

use super::budget::{Budget, flat};
use super::costs::{self, Cost};

/// Calls a method of a value.
pub(super) fn call(
    state: &mut State<'_, '_>,
    value: &Value,
    name: &str,
    arguments: &[Value],
) -> Result<Value, Error> {
    let mut all = Vec::with_capacity(1 + arguments.len());
    all.push(value.clone());
    all.extend(arguments.iter().cloned());
    cost(value.kind(), name)(Budget::of(state), &all)?;
    let made = unknown_method_callback(state, value, name, arguments)?;
    flat(state, made)
}

fn cost(kind: ValueKind, name: &str) -> Cost {
    match (kind, name) {
        (ValueKind::String, "upper" | "lower" | "title" | "capitalize") => costs::change_case,
        (ValueKind::String, "strip" | "lstrip" | "rstrip") => costs::trim,
        (ValueKind::String, "replace") => costs::replace,
        (ValueKind::String, "split") => costs::split,
        (ValueKind::String, "splitlines") => costs::lines,
        (ValueKind::String, "format") => costs::format_braces,
        (ValueKind::String, "join") => costs::join_with,
        (ValueKind::Map, "keys" | "values" | "items") => costs::pairs,
        (ValueKind::Map, "get") => |budget, arguments| match arguments.get(1) {
            Some(key) => budget.read(key).map(|_| ()),
            None => Ok(()),
        },
        (ValueKind::Map, _) => costs::nothing,
        _ => costs::read,
    }
}
