//! White space between the parts of a value.

use serde_json::Value;

use super::{SchemaPath, fault, refused};
use crate::GrammarError;

/// The keyword of llguidance's options, and the one of them that is followed.
pub(super) const OPTIONS: &str = "x-guidance";
const FLEXIBLE: &str = "whitespace_flexible";

/// Some spaces, or a new line and its indentation. Not bounded, a model could go on with white
/// space forever.
const FREE: &str = r" {1,4}|\r?\n[ \t]{0,64}";

/// Adds what a schema asks for to the parser's options.
///
/// Without a wish a comma and a colon may have a space after them: models write both ways, and
/// with the space as a part of the next token neither costs more tokens than the other.
pub(super) fn add_to(options: &mut Value, schema: &Value) -> Result<(), GrammarError> {
    options[FLEXIBLE] = false.into();
    match wish(schema)? {
        None => {
            options["item_separator"] = ", ?".into();
            options["key_separator"] = ": ?".into();
        }
        Some(true) => options["whitespace_pattern"] = FREE.into(),
        Some(false) => {}
    }
    Ok(())
}

/// Whether a schema wants white space or none, in its outermost object.
fn wish(schema: &Value) -> Result<Option<bool>, GrammarError> {
    let Some(options) = schema.get(OPTIONS) else { return Ok(None) };
    let root = SchemaPath::root();
    let fault =
        || fault(OPTIONS, &root, "an object with the boolean `whitespace_flexible`", options);
    let named = options.as_object().ok_or_else(fault)?;
    if let Some(name) = named.keys().find(|name| *name != FLEXIBLE) {
        return Err(refused(&format!("{OPTIONS}: {name}"), &root, ""));
    }
    named.get(FLEXIBLE).map(|flexible| flexible.as_bool().ok_or_else(fault)).transpose()
}
