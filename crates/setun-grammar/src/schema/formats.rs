//! Formats that the parser takes too broadly, as expressions of their own.
//!
//! Each takes a part of what its format allows, and nothing else.

use serde_json::{Map, Value, json};

/// Days that every year has. There is no year 0 for most readers.
const COMMON_DATE: &str = "(?:[1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])\
    |(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))";

/// The 29th of February: of years that 4 divides, but of hundreds only those that 400 divides.
const LEAP_DATE: &str =
    "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:0[48]|[2468][048]|[13579][26])00)-02-29";

/// Times; of leap seconds, which are the last of a day in universal time, those written so. The
/// letters of a time are in upper case, as many readers take no other.
const TIME: &str = r"(?:(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]+)?(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])|23:59:60(?:\.[0-9]+)?Z)";

/// Up to six labels of up to 20 letters and digits, with single hyphens between them: two of them
/// could begin a label that spells another alphabet, and the whole stays below 253 characters.
const HOST_NAME: &str =
    r"[A-Za-z0-9](?:-?[A-Za-z0-9]){0,19}(?:\.[A-Za-z0-9](?:-?[A-Za-z0-9]){0,19}){0,5}";

/// Replaces the format of a schema where an expression here is closer.
pub(super) fn write_out(schema: &mut Map<String, Value>) {
    let date = || format!("(?:{COMMON_DATE}|{LEAP_DATE})");
    let expression = match schema.get("format").and_then(Value::as_str) {
        Some("date") => date(),
        Some("time") => TIME.to_owned(),
        Some("date-time") => format!("{}T{TIME}", date()),
        Some("hostname") => HOST_NAME.to_owned(),
        _ => return,
    };
    schema.shift_remove("format");
    let part = json!({ "pattern": format!("^(?:{expression})$") });
    match schema.get_mut("allOf").and_then(Value::as_array_mut) {
        Some(parts) => parts.push(part),
        None => {
            schema.insert("allOf".to_owned(), json!([part]));
        }
    }
}
