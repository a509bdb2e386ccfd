//! Options of a schema: white space between the parts of a value, and open objects.

use serde_json::{Value, json};

use super::{SchemaPath, fault, refused};
use crate::GrammarError;
pub(super) use crate::open_objects::KEYWORD;
use crate::open_objects::OPEN_OBJECTS;

/// The one of llguidance's options that is followed.
const FLEXIBLE: &str = "whitespace_flexible";

/// Some spaces, or a new line and its indentation. Not bounded, a model could go on with white
/// space forever.
const FREE: &str = r" {1,4}|\r?\n[ \t]{0,64}";

/// Options in the outermost object of a schema.
pub(super) struct Options {
    /// Whether it wants white space or none.
    white_space: Option<bool>,
    /// Whether objects may have properties that are not listed.
    pub(super) open_objects: bool,
}

impl Options {
    pub(super) fn of(schema: &Value) -> Result<Self, GrammarError> {
        let mut found = Self { white_space: None, open_objects: false };
        let Some(options) = schema.get(KEYWORD) else { return Ok(found) };
        let root = SchemaPath::root();
        let expected = "an object with the booleans `whitespace_flexible` and `open_objects`";
        let fault = || fault(KEYWORD, &root, expected, options);
        for (name, value) in options.as_object().ok_or_else(fault)? {
            match name.as_str() {
                FLEXIBLE => found.white_space = Some(value.as_bool().ok_or_else(fault)?),
                OPEN_OBJECTS => found.open_objects = value.as_bool().ok_or_else(fault)?,
                _ => return Err(refused(&format!("{KEYWORD}: {name}"), &root, "")),
            }
        }
        Ok(found)
    }

    /// The same as the parser takes it.
    ///
    /// Without a wish a comma and a colon may have a space after them: models write both ways, and
    /// with the space as a part of the next token neither costs more tokens than the other.
    pub(super) fn for_parser(&self, escapes: &str) -> Value {
        let mut options = json!({ "json_allowed_escapes": escapes, FLEXIBLE: false });
        match self.white_space {
            None => {
                options["item_separator"] = ", ?".into();
                options["key_separator"] = ": ?".into();
            }
            Some(true) => options["whitespace_pattern"] = FREE.into(),
            Some(false) => {}
        }
        options
    }
}
