//! Methods that texts, lists and maps have in Python, each with what it costs.

use minijinja::value::{ValueKind, from_args};
use minijinja::{Error, ErrorKind, State, Value};
use minijinja_contrib::pycompat::unknown_method_callback;

use super::budget::{Budget, flat};
use super::costs::{self, Cost};
use super::python_text;

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
    let own = match value.as_str() {
        Some(text) => python_text::call(text, name, arguments),
        None => call_of_container(value, name, arguments),
    };
    let made = own.unwrap_or_else(|| unknown_method_callback(state, value, name, arguments))?;
    flat(state, made)
}

/// Calls a method of a list or a map that minijinja lacks.
fn call_of_container(
    value: &Value,
    name: &str,
    arguments: &[Value],
) -> Option<Result<Value, Error>> {
    match (value.kind(), name) {
        (ValueKind::Seq, "index") => Some(index(value, arguments)),
        // Nothing can change either of the two.
        (ValueKind::Seq | ValueKind::Map, "copy") if !value.is_tuple() => {
            Some(from_args::<()>(arguments).map(|()| value.clone()))
        }
        _ => None,
    }
}

/// `list.index(value, start, stop)`.
fn index(list: &Value, arguments: &[Value]) -> Result<Value, Error> {
    let (wanted, start, stop): (&Value, Option<i64>, Option<i64>) = from_args(arguments)?;
    let bounds = python_text::bounds(list.len().unwrap_or(0), start, stop);
    let (start, stop) = bounds.unwrap_or((0, 0));
    let mut entries = list.try_iter()?.enumerate().skip(start).take(stop - start);
    let found = entries.find(|(_, entry)| entry == wanted);
    let missing = || Error::new(ErrorKind::InvalidOperation, "the value is not in the list");
    Ok(Value::from(found.ok_or_else(missing)?.0))
}

fn cost(kind: ValueKind, name: &str) -> Cost {
    match (kind, name) {
        (
            ValueKind::String,
            "upper" | "lower" | "title" | "capitalize" | "swapcase" | "casefold",
        ) => costs::change_case,
        (ValueKind::String, "strip" | "lstrip" | "rstrip") => costs::trim,
        (ValueKind::String, "replace") => costs::replace,
        (ValueKind::String, "split" | "rsplit") => costs::split,
        (ValueKind::String, "partition" | "rpartition" | "removeprefix" | "removesuffix") => {
            costs::copy
        }
        (ValueKind::String, "ljust" | "rjust" | "center" | "zfill") => costs::pad,
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
