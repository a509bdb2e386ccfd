//! Limits on the work of a template, which may come from anybody.
//!
//! A parser, and whatever drops or prints a value, descends into expressions and values by calling
//! itself, so deep ones would end the process. No tag has more than some tokens, and what `set`
//! assigns passes a filter that refuses values that are nested deep, or large, or that would put a
//! namespace into one, where it could come to contain itself.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicU64, Ordering},
};

use minijinja::machinery::{Token, tokenize};
use minijinja::value::{Object, ValueKind, ValueOrKwargs};
use minijinja::{Error, ErrorKind, State, Value, syntax::SyntaxConfig};

use crate::TextError;

/// Tokens of a tag, which bound how deep its expressions are: the longest of published templates
/// has 62.
const MAX_TOKENS: usize = 500;

/// How deep a value may be nested: messages and schemas of tools are, some ten times.
const MAX_DEPTH: usize = 64;

/// Parts of a value that is assigned: entries, and pieces of text.
const MAX_PARTS: u64 = 1_000_000;

/// Parts of all values that one rendering assigns or slices; a list that grows by one at a time
/// counts each time.
const MAX_WORK: u64 = 200_000_000;

/// Bytes of a text that count as one part.
const PART_BYTES: usize = 64;

/// The filter, as templates spell it, and the variable that has what is left of the work.
pub(super) const FILTER: &str = "setun_bounded";
const WORK: &str = "setun work";

/// An entry that no template can spell.
const MARK: &str = "setun namespace";

/// The template with the filter where `set` assigns an expression.
///
/// # Errors
///
/// If a tag is too long. What does not parse stays as it is.
pub(super) fn guard(name: &str, source: &str) -> Result<String, TextError> {
    let mut tag = Tag::default();
    let mut edits = Vec::new();
    let mut put = |at: u32, text: String| edits.push((at as usize, at as usize, text));
    for token in tokenize(source, false, SyntaxConfig::default()) {
        let Ok((token, span)) = token else { break };
        tag.tokens += 1;
        if tag.tokens > MAX_TOKENS {
            let (name, line) = (name.to_owned(), usize::from(span.start_line));
            let reason = format!("more than {MAX_TOKENS} tokens in one tag");
            return Err(TextError::TemplateSyntax { name, line, reason });
        }
        match token {
            Token::TemplateData(_) | Token::VariableStart | Token::BlockStart => {
                tag = Tag::default();
            }
            Token::Ident("set") if tag.tokens == 1 => tag.is_set = true,
            Token::Assign if tag.is_set && !tag.assigns => {
                tag.assigns = true;
                put(span.end_offset, "(".to_owned());
            }
            Token::Dot if tag.is_set && !tag.assigns => tag.is_entry = true,
            Token::BlockEnd if tag.assigns => {
                put(span.start_offset, format!(")|{FILTER}({})", tag.is_entry));
            }
            _ => {}
        }
    }
    Ok(edited(source, edits))
}

/// A text with others in place of some of its bytes; edits are in order.
pub(super) fn edited(source: &str, edits: Vec<(usize, usize, String)>) -> String {
    let (mut edited, mut copied) = (String::with_capacity(source.len()), 0);
    for (start, end, text) in edits {
        edited.push_str(source.get(copied..start).unwrap_or_default());
        edited.push_str(&text);
        copied = end;
    }
    edited + source.get(copied..).unwrap_or_default()
}

/// What is known of the tag that is read.
#[derive(Default)]
struct Tag {
    tokens: usize,
    is_set: bool,
    assigns: bool,
    is_entry: bool, // of a namespace
}

/// What is left of a rendering's work.
#[derive(Debug)]
struct Work(AtomicU64);

impl Object for Work {}

/// The variable that has the work of one rendering.
pub(super) fn work() -> Value {
    std::iter::once((WORK, Value::from_object(Work(AtomicU64::new(MAX_WORK))))).collect()
}

/// The value, with what is made only when it is looked at made now; an error if it is too large.
pub(super) fn bounded(state: &State<'_, '_>, value: Value, is_entry: bool) -> Result<Value, Error> {
    let mut parts = MAX_PARTS;
    let value = flat(value);
    count(&value, 0, &mut parts, is_entry)?;
    spend(state, MAX_PARTS - parts + 1)?;
    Ok(value)
}

/// Takes work off what the rendering has left.
pub(super) fn spend(state: &State<'_, '_>, parts: u64) -> Result<(), Error> {
    if let Some(work) = state.lookup(WORK)
        && let Some(Work(left)) = work.downcast_object_ref()
    {
        let take = |left: u64| left.checked_sub(parts);
        if left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_err() {
            return Err(refused("it assigns or slices too much"));
        }
    }
    Ok(())
}

/// The function `namespace`, with a mark by which namespaces are distinguished from other maps.
pub(super) fn namespace(defaults: Option<ValueOrKwargs>) -> Result<Value, Error> {
    let mut entries = BTreeMap::from([(MARK.to_owned(), Value::from(true))]);
    if let Some(defaults) = defaults.map(ValueOrKwargs::into_value) {
        for key in defaults.try_iter()? {
            entries.insert(key.to_string(), defaults.get_item(&key)?);
        }
    }
    minijinja::functions::namespace(Some(Value::from(entries).into()))
}

/// A list in place of what would make its entries each time, such as the sum of two lists: sums of
/// sums would be as deep as they are many.
fn flat(value: Value) -> Value {
    match value.try_iter() {
        Ok(entries) if value.kind() == ValueKind::Iterable && value.len().is_some() => {
            entries.take(usize::try_from(MAX_PARTS).unwrap_or(usize::MAX)).collect()
        }
        _ => value,
    }
}

/// Takes a value's parts off. With `is_entry` it must have no namespace, as it may be put into it.
fn count(value: &Value, depth: usize, parts: &mut u64, is_entry: bool) -> Result<(), Error> {
    let text = value.as_bytes().map_or(0, <[u8]>::len) / PART_BYTES;
    let Some(left) = parts.checked_sub(1 + text as u64) else {
        return Err(refused("a value is too large"));
    };
    *parts = left;
    if depth > MAX_DEPTH {
        return Err(refused("a value is nested too deep"));
    }
    let kind = value.kind();
    if !matches!(kind, ValueKind::Seq | ValueKind::Map | ValueKind::Iterable) {
        return Ok(());
    }
    let is_namespace = || value.get_attr(MARK).is_ok_and(|mark| mark.is_true());
    if is_entry && kind == ValueKind::Map && is_namespace() {
        return Err(refused("a namespace is put into a value"));
    }
    for entry in value.try_iter()? {
        match kind {
            ValueKind::Map => count(&value.get_item(&entry)?, depth + 1, parts, is_entry)?,
            _ => count(&entry, depth + 1, parts, is_entry)?,
        }
    }
    Ok(())
}

fn refused(what: &'static str) -> Error {
    Error::new(ErrorKind::InvalidOperation, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guarded(source: &str) -> String {
        guard("default", source).expect("short tags")
    }

    #[test]
    fn what_is_assigned_passes_the_filter_and_nothing_else_changes() {
        let source = "a{%- set x = {'a': [1, '%}']}['a'] if y else f(z=2) -%}{{ x }}{% set t %}b{% endset %}";
        let expected = "a{%- set x =( {'a': [1, '%}']}['a'] if y else f(z=2) )|setun_bounded(false)-%}{{ x }}{% set t %}b{% endset %}";
        assert_eq!(guarded(source), expected);
        for same in ["", "plain", "{# {% set x = 1 %} #}", "{% raw %}{% set x = 1 %}{% endraw %}"] {
            assert_eq!(guarded(same), same);
        }
        assert_eq!(guarded("é{% set ns.x = 1 %}ü"), "é{% set ns.x =( 1 )|setun_bounded(true)%}ü");
    }

    #[test]
    fn long_tags_are_refused_with_their_line() {
        for link in ["+1", ".a", "[0]", "()", "~1", "**2"] {
            let source = format!("\n{{{{ 1{} }}}}", link.repeat(40_000));
            let error = guard("default", &source).expect_err("too long");
            assert!(matches!(error, TextError::TemplateSyntax { line: 2, .. }), "{error}");
        }
    }
}
