//! Parts of a schema that are left free, since a keyword cannot be applied there.

use serde_json::{Map, Value};

use crate::GrammarError;

/// The most reasons that are kept.
const MAX_REASONS: usize = 16;

/// Keywords without which an object may have properties of other names than are left of it.
const WITH_NAMES: [&str; 7] =
    ["$ref", "additionalProperties", "allOf", "anyOf", "oneOf", "patternProperties", "properties"];

/// Why keywords are not applied.
#[derive(Default)]
pub(super) struct FreeParts(Vec<GrammarError>);

impl FreeParts {
    /// Adds a reason; an error that is none of the schema's words stays one.
    pub(super) fn add(&mut self, error: GrammarError) -> Result<(), GrammarError> {
        match error {
            GrammarError::Keyword { .. }
            | GrammarError::KeywordValue { .. }
            | GrammarError::Schema { .. } => {
                if self.0.len() < MAX_REASONS {
                    self.0.push(error);
                }
                Ok(())
            }
            error => Err(error),
        }
    }

    pub(super) fn into_reasons(self) -> Vec<GrammarError> {
        self.0
    }
}

/// Opens what other keywords would close more than the schema does, once these are left out.
pub(super) fn open(prepared: &mut Map<String, Value>, left: &[&str]) {
    if left.iter().any(|name| WITH_NAMES.contains(name)) {
        prepared.insert("additionalProperties".to_owned(), true.into());
    }
    if left.contains(&"prefixItems") {
        prepared.shift_remove("items");
    }
}
