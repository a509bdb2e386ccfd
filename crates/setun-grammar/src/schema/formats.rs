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

/// Addresses: up to 32 characters before the `@` with single dots between them, as 64 are allowed in
/// all; then a host of at least two labels, the last of letters, as readers of mail demand it. The
/// whole stays below 254 characters.
const EMAIL: &str = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-](?:\.?[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]){0,31}@(?:[A-Za-z0-9](?:-?[A-Za-z0-9]){0,19}\.){1,4}[A-Za-z]{2,20}";

/// Formats of integers, as `OpenAPI` and schemars have them, with the least and the largest; none
/// for those that are beyond the bounds of any integer here.
const INTEGERS: [(&str, Option<i64>, Option<i64>); 9] = [
    ("int8", Some(-0x80), Some(0x7f)),
    ("int16", Some(-0x8000), Some(0x7fff)),
    ("int32", Some(-0x8000_0000), Some(0x7fff_ffff)),
    ("int64", None, None),
    ("uint8", Some(0), Some(0xff)),
    ("uint16", Some(0), Some(0xffff)),
    ("uint32", Some(0), Some(0xffff_ffff)),
    ("uint64", Some(0), None),
    ("uint", Some(0), None),
];

/// Bounds integers by their format, where the schema itself does not. A format says nothing of
/// values of other types.
pub(super) fn bound_integers(schema: &Map<String, Value>, prepared: &mut Map<String, Value>) {
    let has_type = |name: &str| match prepared.get("type") {
        Some(Value::Array(types)) => types.iter().any(|one| one == name),
        one => one.is_some_and(|one| one == name),
    };
    if !has_type("integer") || has_type("number") {
        return;
    }
    let format = schema.get("format").and_then(Value::as_str);
    let Some((_, least, most)) = INTEGERS.iter().find(|(name, ..)| format == Some(*name)) else {
        return;
    };
    for (names, bound) in
        [(["minimum", "exclusiveMinimum"], least), (["maximum", "exclusiveMaximum"], most)]
    {
        let is_bounded = names.iter().any(|&name| prepared.contains_key(name));
        if let Some(bound) = bound.filter(|_| !is_bounded) {
            prepared.insert(names[0].to_owned(), bound.into());
        }
    }
}

/// Replaces the format of a schema where an expression here is closer.
pub(super) fn write_out(schema: &mut Map<String, Value>) {
    let date = || format!("(?:{COMMON_DATE}|{LEAP_DATE})");
    let expression = match schema.get("format").and_then(Value::as_str) {
        Some("date") => date(),
        Some("time") => TIME.to_owned(),
        Some("date-time") => format!("{}T{TIME}", date()),
        Some("email") => EMAIL.to_owned(),
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
