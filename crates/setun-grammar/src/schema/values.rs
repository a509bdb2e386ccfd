//! Values that keywords may have.

use serde_json::{Map, Value};

use super::keywords::Draft;
use super::{SchemaPath, fault, refused};
use crate::GrammarError;
use crate::pattern::from_ecma;

/// The types of JSON Schema.
const TYPES: [&str; 7] = ["null", "boolean", "object", "array", "number", "string", "integer"];

/// Up to here a 64-bit float has every integer, and the parser counts in such.
const LARGEST_EXACT: f64 = 9_007_199_254_740_992.0;

/// A whole number without a bound stays in the range of signed 64-bit integers.
const LARGEST_WHOLE: f64 = 9e18;

/// The smallest number beside zero whose digits are written out.
const SMALLEST: f64 = 1e-9;

/// The value of a keyword that holds no schema, as the parser takes it.
pub(super) fn checked(
    keyword: &str,
    value: &Value,
    draft: Draft,
    place: &SchemaPath,
) -> Result<Value, GrammarError> {
    let fault = |expected| fault(keyword, place, expected, value);
    match keyword {
        "type" => {
            is_type(value).then(|| value.clone()).ok_or_else(|| fault("a type or a list of types"))
        }
        "enum" => {
            let list = value.as_array().filter(|list| !list.is_empty());
            let list = list.ok_or_else(|| fault("a list of values"))?;
            list.iter().try_for_each(|value| constant(value)).map_err(fault)?;
            Ok(value.clone())
        }
        "const" => constant(value).map(|()| value.clone()).map_err(fault),
        "required" => {
            let names = value.as_array().is_some_and(|list| list.iter().all(Value::is_string));
            names.then(|| value.clone()).ok_or_else(|| fault("a list of names"))
        }
        "pattern" => {
            let text = value.as_str().ok_or_else(|| fault("a regular expression"))?;
            let refuse = |hint: String| refused(&format!("pattern: {text}"), place, &hint);
            pattern(text).map(Value::from).map_err(refuse)
        }
        "format" => value.is_string().then(|| value.clone()).ok_or_else(|| fault("a name")),
        "exclusiveMinimum" | "exclusiveMaximum" if draft.exclusive_is_boolean() => {
            value.as_bool().map(Value::from).ok_or_else(|| fault("a boolean"))
        }
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => {
            number(value).map(|()| value.clone()).map_err(fault)
        }
        _ => count(value).map(Value::from).ok_or_else(|| fault("a whole number from 0")),
    }
}

fn is_type(value: &Value) -> bool {
    let known = |value: &Value| value.as_str().is_some_and(|name| TYPES.contains(&name));
    known(value) || value.as_array().is_some_and(|list| !list.is_empty() && list.iter().all(known))
}

/// Whether a constant can be written exactly; if not, what can.
fn constant(value: &Value) -> Result<(), &'static str> {
    match value {
        Value::Number(_) => number(value),
        Value::String(text) => spelt(text),
        Value::Array(list) => list.iter().try_for_each(constant),
        Value::Object(map) => {
            map.iter().try_for_each(|(name, value)| spelt(name).and_then(|()| constant(value)))
        }
        Value::Null | Value::Bool(_) => Ok(()),
    }
}

/// Whether a text is written without `\u`.
fn spelt(text: &str) -> Result<(), &'static str> {
    let rare = |character: char| {
        character == '\u{7f}' || character < ' ' && !"\n\r\t\u{8}\u{c}".contains(character)
    };
    if text.contains(rare) {
        Err("texts without control characters other than \\n, \\r, \\t, \\b, \\f")
    } else {
        Ok(())
    }
}

fn number(value: &Value) -> Result<(), &'static str> {
    let number = value.as_f64().ok_or("a number")?;
    let size = number.abs();
    if size > LARGEST_EXACT || (size < SMALLEST && size != 0.0) {
        return Err("a number between 10^-9 and 2^53, or zero");
    }
    Ok(())
}

/// A count, which may be written as a float.
fn count(value: &Value) -> Option<u64> {
    let float =
        || value.as_f64().filter(|&count| (0.0..=4e9).contains(&count) && count.fract() == 0.0);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a whole number in range"
    )]
    value.as_u64().or_else(|| float().map(|count| count as u64))
}

/// A regular expression for the parser, or the end of a message that says why there is none.
pub(super) fn pattern(text: &str) -> Result<String, String> {
    from_ecma(text).map_err(|reason| format!(": {reason}"))
}

/// Refuses a least number of properties that names given twice could stay below.
pub(super) fn count_of_properties(
    schema: &Map<String, Value>,
    place: &SchemaPath,
) -> Result<(), GrammarError> {
    let least = schema.get("minProperties").and_then(Value::as_u64).unwrap_or(0);
    let required = schema.get("required").and_then(Value::as_array).map_or(0, Vec::len) as u64;
    if least > required + 1 {
        let keyword = format!("minProperties: {least}");
        return Err(refused(
            &keyword,
            place,
            ": more than one name would be free, and could come twice",
        ));
    }
    Ok(())
}

/// Bounds whole numbers and multiples that have no bound: a number of hundreds of digits is valid
/// and of no use, as who reads it takes it for another or for none.
pub(super) fn bound_numbers(schema: &mut Map<String, Value>) {
    let whole = schema.get("type").is_some_and(|value| value == "integer");
    let bound = match (schema.contains_key("multipleOf"), whole) {
        (true, _) => LARGEST_EXACT,
        (false, true) => LARGEST_WHOLE,
        (false, false) => return,
    };
    for (names, bound) in
        [(["minimum", "exclusiveMinimum"], -bound), (["maximum", "exclusiveMaximum"], bound)]
    {
        if !names.iter().any(|&name| schema.contains_key(name)) {
            schema.insert(names[0].to_owned(), bound.into());
        }
    }
}

/// The values of `multipleOf` in a document.
///
/// The parser multiplies those that meet, in 32 bits.
pub(super) struct Multiples {
    seen: Vec<(u64, u32)>, // numerators over powers of ten
}

impl Multiples {
    pub(super) fn new() -> Self {
        Self { seen: Vec::new() }
    }

    pub(super) fn checked(&mut self, value: &Value) -> Result<Value, &'static str> {
        let number = value.as_f64().filter(|&number| number > 0.0).ok_or("a number above 0")?;
        let fraction = decimal(number).ok_or("at most nine digits")?;
        if !self.seen.contains(&fraction) {
            self.seen.push(fraction);
        }
        let places = self.seen.iter().map(|&(_, places)| places).max().unwrap_or(0);
        let scaled =
            self.seen.iter().map(|&(units, own)| units.checked_mul(10_u64.pow(places - own)));
        let together = scaled.into_iter().try_fold(1_u64, |all, units| all.checked_mul(units?));
        match together {
            Some(product) if u32::try_from(product).is_ok() => Ok(value.clone()),
            _ => Err("fewer digits in all values of `multipleOf` together"),
        }
    }
}

/// A number as units of a power of ten, just as the parser finds them.
fn decimal(number: f64) -> Option<(u64, u32)> {
    let (mut units, mut scale) = (number, 1.0);
    for places in 0..=9 {
        if units.fract() == 0.0 {
            let exact = units <= f64::from(u32::MAX) && units / scale == number;
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a whole number in range"
            )]
            return exact.then_some((units as u64, places));
        }
        units *= 10.0;
        scale *= 10.0;
    }
    None
}
