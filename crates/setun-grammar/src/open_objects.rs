//! The option of a schema that leaves its objects open.

use serde_json::{Value, json};

/// The keyword of llguidance's options.
pub(crate) const KEYWORD: &str = "x-guidance";

/// An option beside them, which llguidance does not have.
pub(crate) const OPEN_OBJECTS: &str = "open_objects";

/// Makes a schema leave its objects open; a boolean schema has no list to leave.
pub(crate) fn open_objects(schema: &mut Value) {
    if let Value::Object(map) = schema {
        let options = map.entry(KEYWORD).or_insert_with(|| json!({}));
        if let Value::Object(options) = options {
            options.insert(OPEN_OBJECTS.to_owned(), true.into());
        }
    }
}
