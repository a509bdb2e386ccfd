//! References of a schema to parts of its document.

use serde_json::Value;

use super::SchemaPath;
use crate::GrammarError;
use crate::names::Names;

/// The referenced parts, each of which becomes a definition with a name of its own.
pub(super) struct References<'a> {
    document: &'a Value,
    names: Names,
    waiting: Vec<(String, SchemaPath)>,
}

impl<'a> References<'a> {
    pub(super) fn new(document: &'a Value) -> Self {
        Self { document, names: Names::default(), waiting: Vec::new() }
    }

    /// The name of the part that `reference` means, or why there is none.
    pub(super) fn name(&mut self, reference: &str) -> Result<String, &'static str> {
        let pointer = reference.strip_prefix('#').ok_or(": it leaves the schema")?;
        if !(pointer.is_empty() || pointer.starts_with('/')) {
            return Err(": anchors are not followed");
        }
        let pointer = percent_decoded(pointer).ok_or(": it is not a pointer")?;
        if self.document.pointer(&pointer).is_none() {
            return Err(": nothing is there");
        }
        let known = self.names.len();
        let number = self.names.number(&pointer);
        let name = format!("part{number}");
        if number < known {
            return Ok(name);
        }
        let place = SchemaPath {
            in_other_document: self.crosses_document(&pointer),
            pointer: format!("#{pointer}"),
            depth: 1,
        };
        self.waiting.push((name.clone(), place));
        Ok(name)
    }

    /// A part that was named and not yet handed out.
    pub(super) fn next(&mut self) -> Option<(String, SchemaPath)> {
        self.waiting.pop()
    }

    /// What is at a place that [`Self::next`] gave.
    pub(super) fn target(&self, place: &SchemaPath) -> Result<&'a Value, GrammarError> {
        let pointer = place.pointer.trim_start_matches('#');
        self.document.pointer(pointer).ok_or_else(|| GrammarError::Schema {
            reason: format!("nothing is at {}", place.pointer),
        })
    }

    /// Whether something on the way to a part has an `$id`.
    fn crosses_document(&self, pointer: &str) -> bool {
        let ends = pointer.match_indices('/').map(|(end, _)| end).skip(1);
        ends.chain([pointer.len()]).filter(|&end| end > 0).any(|end| {
            let part = self.document.pointer(&pointer[..end]);
            part.is_some_and(|part| {
                part.get("$id").or_else(|| part.get("id")).is_some_and(Value::is_string)
            })
        })
    }
}

/// The text that a part of a URI spells.
fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        if first != b'%' {
            bytes.push(first);
            continue;
        }
        let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = &rest[2..];
    }
    String::from_utf8(bytes).ok()
}
