//! Jinja as Hugging Face's `apply_chat_template` sets it up: blocks swallow the line they
//! stand on, strings and maps have Python's methods, loops have `break` and `continue`, and
//! there are `raise_exception`, `strftime_now` and a `tojson` of its own.

use minijinja::syntax::SyntaxConfig;
use minijinja::value::ValueKind;
use minijinja::{AutoEscape, Environment, Error, ErrorKind, State, Value, escape_formatter};
use minijinja_contrib::pycompat::unknown_method_callback;

use super::to_json::to_json;
use super::{bounds, python_float, slices};
use crate::{CivilTime, TextError};

/// Instructions a template may run; the longest real ones need some thousands a message. A
/// template comes with a model, which may be anybody's.
const FUEL: u64 = 20_000_000;

/// The language without any template.
pub(super) fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
    // Building fails only for delimiters, and those are the usual ones.
    environment.set_syntax(syntax.unwrap_or_default());
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_unknown_method_callback(method);
    environment.set_fuel(Some(FUEL));
    environment.set_formatter(|out, state, value| match python_float::from_value(value) {
        Some(number) => Ok(out.write_str(&python_float::repr(number))?),
        None => escape_formatter(out, state, value),
    });
    environment.add_filter(bounds::FILTER, bounds::bounded);
    environment.add_function("namespace", bounds::namespace);
    environment.add_filter("tojson", to_json);
    environment.add_filter("string", string);
    environment.add_filter("length", length);
    environment.add_filter("count", length);
    environment.add_test("iterable", is_iterable);
    environment.add_function("raise_exception", raise_exception);
    environment
}

/// The methods that values have beyond those of their own.
fn method(
    state: &mut State<'_, '_>,
    value: &Value,
    name: &str,
    arguments: &[Value],
) -> Result<Value, Error> {
    match name {
        slices::METHOD => slices::slice(state, value, arguments),
        _ => unknown_method_callback(state, value, name, arguments),
    }
}

/// A value as Python's `str` writes it.
fn string(value: &Value) -> String {
    python_float::from_value(value).map_or_else(|| value.to_string(), python_float::repr)
}

/// As in Jinja, an undefined value has no entries.
fn length(value: &Value) -> Result<usize, Error> {
    let length = if value.is_undefined() { Some(0) } else { value.len() };
    length.ok_or_else(|| {
        let message = format!("a value of type {} has no length", value.kind());
        Error::new(ErrorKind::InvalidOperation, message)
    })
}

/// As in Python, text can be iterated over and `None` cannot.
fn is_iterable(value: &Value) -> bool {
    use ValueKind::{Iterable, Map, Seq, String, Undefined};
    matches!(value.kind(), Iterable | Map | Seq | String | Undefined)
}

/// The function `strftime_now(format)` at a given time.
pub(super) fn strftime_now(now: CivilTime) -> Value {
    Value::from_function(move |format: &str| {
        now.format(format).map_err(|directive| {
            let message = format!("strftime_now does not know {directive}");
            Error::new(ErrorKind::InvalidOperation, message)
        })
    })
}

/// The template's own complaint, kept apart from mistakes in the template.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Raised(String);

fn raise_exception(message: String) -> Result<Value, Error> {
    let error = Error::new(ErrorKind::InvalidOperation, message.clone());
    Err(error.with_source(Raised(message)))
}

/// What a template that does not parse is reported as.
pub(super) fn syntax_error(name: &str, error: &Error) -> TextError {
    let (name, line) = (name.to_owned(), error.line().unwrap_or(0));
    TextError::TemplateSyntax { name, line, reason: reason(error) }
}

/// What a template that fails while it runs is reported as.
pub(super) fn render_error(name: &str, error: &Error) -> TextError {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(current) = cause {
        if let Some(Raised(message)) = current.downcast_ref() {
            return TextError::TemplateRefused { message: message.clone() };
        }
        cause = current.source();
    }
    let (name, line) = (name.to_owned(), error.line().unwrap_or(0));
    TextError::TemplateFailed { name, line, reason: reason(error) }
}

/// The kind of an error with its detail.
fn reason(error: &Error) -> String {
    match error.detail() {
        Some(detail) => format!("{}: {detail}", error.kind()),
        None => error.kind().to_string(),
    }
}
