//! Jinja as Hugging Face's `apply_chat_template` sets it up: blocks swallow the line they
//! stand on, strings and maps have Python's methods, loops have `break` and `continue`, and
//! there are `raise_exception`, `strftime_now` and a `tojson` of its own.

use std::fmt::{self, Write as _};

use minijinja::syntax::SyntaxConfig;
use minijinja::{AutoEscape, Environment, Error, ErrorKind, State, Value, escape_formatter};

use super::budget::{Budget, Exceeded, Interrupted};
use super::to_json::to_json;
use super::{bounds, filters, globals, methods, open_macro, operators, python_float, remainder};
use crate::{CivilTime, TextError};

/// Recursion of macros and nested blocks, where a macro counts for four: what the language needs of a
/// stack is some kilobytes for each.
const MAX_RECURSION: usize = 200;

/// Bytes of a template's own words in an error.
const MAX_MESSAGE: usize = 4096;

/// The language without any template.
pub(super) fn environment() -> Environment<'static> {
    let mut environment = Environment::empty();
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
    // Building fails only for delimiters, and those are the usual ones.
    environment.set_syntax(syntax.unwrap_or_default());
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_unknown_method_callback(methods::call);
    environment.set_recursion_limit(MAX_RECURSION);
    environment.set_formatter(write);
    operators::add_to(&mut environment);
    environment.add_filter(operators::REMAINDER, remainder::remainder);
    environment.add_filter(operators::OPEN_MACRO, open_macro::open);
    filters::add_to(&mut environment);
    globals::add_to(&mut environment);
    environment.add_global(bounds::ONE, 1);
    environment.add_filter("tojson", to_json);
    environment.add_filter("string", string);
    environment.add_filter("length", filters::length);
    environment.add_filter("count", filters::length);
    environment.add_test("iterable", filters::is_iterable);
    environment.add_function("raise_exception", raise_exception);
    environment
}

/// Writes a value, charged first, into the output or what captures it.
fn write(
    out: &mut minijinja::Output<'_>,
    state: &mut State<'_, '_>,
    value: &Value,
) -> Result<(), Error> {
    let budget = Budget::of(state);
    if let Some(number) = python_float::from_value(value) {
        let number = python_float::repr(number);
        budget.bytes(number.len() as u64)?;
        return Ok(out.write_str(&number)?);
    }
    let bytes = budget.printed(value)?;
    budget.bytes(bytes)?;
    escape_formatter(out, state, value)
}

/// A value as Python's `str` writes it.
fn string(state: &mut State<'_, '_>, value: &Value) -> Result<Value, Error> {
    let budget = Budget::of(state);
    if value.as_str().is_some() {
        return Ok(value.clone());
    }
    let bytes = budget.printed(value)?;
    budget.bytes(bytes)?;
    let number = python_float::from_value(value).map(python_float::repr);
    Ok(Value::from(number.unwrap_or_else(|| value.to_string())))
}

/// The function `strftime_now(format)` at a given time.
pub(super) fn strftime_now(now: CivilTime) -> Value {
    Value::from_function(move |state: &mut State<'_, '_>, format: Value| {
        let budget = Budget::of(state);
        let bytes = budget.printed(&format)?;
        budget.bytes(bytes.saturating_mul(16))?; // `%F` becomes at most 17
        now.format(format.as_str().unwrap_or_default()).map_err(|directive| {
            let message = format!("strftime_now does not know {directive}");
            Error::new(ErrorKind::InvalidOperation, message)
        })
    })
}

/// The template's own complaint, kept apart from mistakes in the template.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Raised(String);

fn raise_exception(state: &mut State<'_, '_>, message: &Value) -> Result<Value, Error> {
    Budget::of(state).steps(1)?;
    let message = excerpt(format_args!("{message}"));
    let error = Error::new(ErrorKind::InvalidOperation, message.clone());
    Err(error.with_source(Raised(message)))
}

/// The beginning of something that is printed.
fn excerpt(printed: fmt::Arguments<'_>) -> String {
    let mut excerpt = Excerpt(String::new());
    if excerpt.write_fmt(printed).is_err() {
        excerpt.0.push('…');
    }
    excerpt.0
}

struct Excerpt(String);

impl fmt::Write for Excerpt {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = MAX_MESSAGE - self.0.len();
        self.0 += &text[..text.floor_char_boundary(room)];
        if text.len() > room { Err(fmt::Error) } else { Ok(()) }
    }
}

/// What a template that does not parse is reported as.
pub(super) fn syntax_error(name: &str, error: &Error) -> TextError {
    let (name, line) = (name.to_owned(), error.line().unwrap_or(0));
    TextError::TemplateSyntax { name, line, reason: reason(error) }
}

/// What a template that fails while it runs is reported as.
pub(super) fn render_error(name: &str, error: &Error) -> TextError {
    let (name, line) = (name.to_owned(), error.line().unwrap_or(0));
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(current) = cause {
        if let Some(Raised(message)) = current.downcast_ref() {
            return TextError::TemplateRefused { message: message.clone() };
        } else if let Some(&Exceeded { what, limit, found }) = current.downcast_ref() {
            return TextError::TemplateLimit { name, line, what, limit, found };
        } else if is_too_deep(current) {
            let (limit, found) = (MAX_RECURSION as u64, MAX_RECURSION as u64 + 1);
            return TextError::TemplateLimit {
                name,
                line,
                what: "open blocks and macros",
                limit,
                found,
            };
        } else if current.is::<Interrupted>() {
            return TextError::TemplateInterrupted { name, line };
        }
        cause = current.source();
    }
    TextError::TemplateFailed { name, line, reason: reason(error) }
}

/// Whether an error is that of the recursion limit, which has no type.
fn is_too_deep(error: &(dyn std::error::Error + 'static)) -> bool {
    let detail = error.downcast_ref().and_then(Error::detail);
    detail == Some("recursion limit exceeded")
}

/// The kind of an error with its detail.
fn reason(error: &Error) -> String {
    match error.detail() {
        Some(detail) => excerpt(format_args!("{}: {detail}", error.kind())),
        None => error.kind().to_string(),
    }
}
