//! The filter `tojson` as Hugging Face defines it: Python's `json.dumps`, which escapes
//! nothing for HTML and keeps the order of keys.

use std::fmt::Write as _;

use minijinja::value::{Kwargs, ValueKind};
use minijinja::{Error, ErrorKind, Value};

use super::python_float;

/// `tojson(ensure_ascii=False, indent=None, separators=None, sort_keys=False)`.
#[expect(clippy::needless_pass_by_value, reason = "filters are handed their arguments so")]
pub(super) fn to_json(
    value: &Value,
    ensure_ascii: Option<Value>,
    indent: Option<Value>,
    named: Kwargs,
) -> Result<Value, Error> {
    let argument = |positional: Option<Value>, name| match positional {
        Some(value) => Ok(value),
        None => named.get::<Option<Value>>(name).map(Option::unwrap_or_default),
    };
    let ensure_ascii = argument(ensure_ascii, "ensure_ascii")?.is_true();
    let indent = indentation(&argument(indent, "indent")?)?;
    let (item, key) = separators(&argument(None, "separators")?, indent.is_some())?;
    let sort_keys = argument(None, "sort_keys")?.is_true();
    named.assert_all_used()?;
    let mut writer = Writer { out: String::new(), ensure_ascii, indent, item, key, sort_keys };
    writer.value(value, 0)?;
    Ok(Value::from(writer.out))
}

/// What stands before each entry of a level: this many spaces, or a string.
fn indentation(indent: &Value) -> Result<Option<String>, Error> {
    match indent.kind() {
        ValueKind::None | ValueKind::Undefined => Ok(None),
        ValueKind::String => Ok(Some(indent.to_string())),
        _ => {
            let spaces = usize::try_from(indent.clone())?.min(MAX_SPACES);
            Ok(Some(" ".repeat(spaces)))
        }
    }
}

/// No template indents further; one must not request gigabytes of spaces.
const MAX_SPACES: usize = 64;

/// What separates entries, and a key from its value.
fn separators(given: &Value, indented: bool) -> Result<(String, String), Error> {
    if given.is_none() || given.is_undefined() {
        return Ok((if indented { "," } else { ", " }.to_owned(), ": ".to_owned()));
    }
    let separator = |index| given.get_item_by_index(index).map(|text| text.to_string());
    Ok((separator(0)?, separator(1)?))
}

struct Writer {
    out: String,
    ensure_ascii: bool,
    indent: Option<String>,
    item: String,
    key: String,
    sort_keys: bool,
}

impl Writer {
    fn value(&mut self, value: &Value, depth: usize) -> Result<(), Error> {
        match value.kind() {
            ValueKind::None => self.out += "null",
            ValueKind::Bool => self.out += if value.is_true() { "true" } else { "false" },
            ValueKind::Number if value.is_integer() => self.out += &value.to_string(),
            ValueKind::Number => self.float(f64::try_from(value.clone())?),
            ValueKind::String => self.text(&value.to_string()),
            ValueKind::Seq | ValueKind::Iterable => self.list(value, depth)?,
            ValueKind::Map => self.map(value, depth)?,
            _ => return Err(not_json(value)),
        }
        Ok(())
    }

    fn list(&mut self, list: &Value, depth: usize) -> Result<(), Error> {
        let mut empty = true;
        self.out.push('[');
        for item in list.try_iter()? {
            self.next_entry(&mut empty, depth);
            self.value(&item, depth + 1)?;
        }
        self.close(']', empty, depth);
        Ok(())
    }

    fn map(&mut self, map: &Value, depth: usize) -> Result<(), Error> {
        let mut keys: Vec<Value> = map.try_iter()?.collect();
        if self.sort_keys {
            keys.sort();
        }
        let mut empty = true;
        self.out.push('{');
        for key in keys {
            self.next_entry(&mut empty, depth);
            self.key(&key)?;
            self.out += &self.key;
            self.value(&map.get_item(&key)?, depth + 1)?;
        }
        self.close('}', empty, depth);
        Ok(())
    }

    /// JSON's keys are strings: Python writes the others as it would write their values.
    fn key(&mut self, key: &Value) -> Result<(), Error> {
        match key.kind() {
            ValueKind::String => self.text(&key.to_string()),
            ValueKind::None | ValueKind::Bool | ValueKind::Number => {
                self.out.push('"');
                self.value(key, 0)?;
                self.out.push('"');
            }
            _ => return Err(not_json(key)),
        }
        Ok(())
    }

    fn next_entry(&mut self, empty: &mut bool, depth: usize) {
        if !std::mem::replace(empty, false) {
            self.out += &self.item;
        }
        self.new_line(depth + 1);
    }

    fn close(&mut self, bracket: char, empty: bool, depth: usize) {
        if !empty {
            self.new_line(depth);
        }
        self.out.push(bracket);
    }

    fn new_line(&mut self, depth: usize) {
        if let Some(indent) = &self.indent {
            self.out.push('\n');
            self.out += &indent.repeat(depth);
        }
    }

    /// Python's JSON has names for the numbers that JSON lacks.
    fn float(&mut self, number: f64) {
        if number.is_finite() {
            self.out += &python_float::repr(number);
        } else if number.is_nan() {
            self.out += "NaN";
        } else {
            self.out += if number < 0.0 { "-Infinity" } else { "Infinity" };
        }
    }

    fn text(&mut self, text: &str) {
        self.out.push('"');
        for character in text.chars() {
            match character {
                '"' => self.out += "\\\"",
                '\\' => self.out += "\\\\",
                '\n' => self.out += "\\n",
                '\r' => self.out += "\\r",
                '\t' => self.out += "\\t",
                '\u{8}' => self.out += "\\b",
                '\u{c}' => self.out += "\\f",
                ' '..='~' => self.out.push(character),
                _ if character >= ' ' && !self.ensure_ascii => self.out.push(character),
                _ => self.escape(character),
            }
        }
        self.out.push('"');
    }

    fn escape(&mut self, character: char) {
        for unit in character.encode_utf16(&mut [0; 2]) {
            // Writing to a string cannot fail.
            let _ = write!(self.out, "\\u{unit:04x}");
        }
    }
}

fn not_json(value: &Value) -> Error {
    let message = format!("a value of type {} cannot be written as JSON", value.kind());
    Error::new(ErrorKind::BadSerialization, message)
}

#[cfg(test)]
mod tests {
    use minijinja::{Environment, context};

    use super::*;
    use crate::chat_template::to_value;

    fn render(json: &str, filter: &str) -> String {
        let mut environment = Environment::new();
        environment.add_filter("tojson", to_json);
        let list: Vec<serde_json::Value> = serde_json::from_str(json).expect("JSON");
        let template = format!("{{{{ list | {filter} }}}}");
        environment
            .render_str(&template, context! { list => to_value::list(&list) })
            .expect("a good template")
    }

    /// Each expectation is the output of Python's `json.dumps` for the same arguments.
    #[test]
    fn writes_as_python_does() {
        let json = r#"[{"b": 1, "a": [], "é": {}}, null, true, -2.0, "<&'>\"\\\n\u0001\u007f😀"]"#;
        let plain = "[{\"b\": 1, \"a\": [], \"é\": {}}, null, true, -2.0, \"<&'>\\\"\\\\\\n\\u0001\u{7f}😀\"]";
        assert_eq!(render(json, "tojson"), plain);
        assert_eq!(render(json, "tojson(ensure_ascii=False)"), plain);
        assert_eq!(
            render(json, "tojson(ensure_ascii=True, sort_keys=true, separators=[',', ':'])"),
            r#"[{"a":[],"b":1,"\u00e9":{}},null,true,-2.0,"<&'>\"\\\n\u0001\u007f\ud83d\ude00"]"#
        );
        assert_eq!(
            render(r#"[{"b": [1, 2], "a": {}}, []]"#, "tojson(indent=2)"),
            "[\n  {\n    \"b\": [\n      1,\n      2\n    ],\n    \"a\": {}\n  },\n  []\n]"
        );
        assert_eq!(render("[1]", "tojson(indent='\t')"), "[\n\t1\n]");
        assert_eq!(render("[1]", "tojson(true, 0)"), "[\n1\n]");
    }
}
