//! The filter `tojson` as Hugging Face defines it: Python's `json.dumps`, which escapes
//! nothing for HTML and keeps the order of keys.

use std::fmt::Write as _;

use minijinja::value::{Kwargs, ValueKind};
use minijinja::{Error, ErrorKind, State, Value};

use super::budget::{Budget, PAIR, entries};
use super::python_float;

/// `tojson(ensure_ascii=False, indent=None, separators=None, sort_keys=False)`.
#[expect(clippy::needless_pass_by_value, reason = "filters are handed their arguments so")]
pub(super) fn to_json(
    state: &mut State<'_, '_>,
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
    let budget = Budget::of(state);
    budget.read(value)?;
    let layout = Layout { ensure_ascii, indent, item, key, sort_keys };
    let mut writer = Writer { out: String::new(), layout: &layout, budget };
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

struct Layout {
    ensure_ascii: bool,
    indent: Option<String>,
    item: String,
    key: String,
    sort_keys: bool,
}

struct Writer<'a> {
    out: String,
    layout: &'a Layout,
    budget: &'a mut Budget,
}

impl Writer<'_> {
    fn value(&mut self, value: &Value, depth: usize) -> Result<(), Error> {
        match value.kind() {
            ValueKind::None => self.put("null"),
            ValueKind::Bool => self.put(if value.is_true() { "true" } else { "false" }),
            ValueKind::Number if value.is_integer() => self.put(&value.to_string()),
            ValueKind::Number => self.float(f64::try_from(value.clone())?),
            ValueKind::String => self.text(value.as_str().unwrap_or_default()),
            ValueKind::Seq | ValueKind::Iterable => self.list(value, depth),
            ValueKind::Map => self.map(value, depth),
            _ => Err(not_json(value)),
        }
    }

    /// Writes a piece of text that is charged first.
    fn put(&mut self, piece: &str) -> Result<(), Error> {
        self.budget.bytes(piece.len() as u64)?;
        self.out += piece;
        Ok(())
    }

    fn list(&mut self, list: &Value, depth: usize) -> Result<(), Error> {
        let mut empty = true;
        self.put("[")?;
        for item in list.try_iter()? {
            self.next_entry(&mut empty, depth)?;
            self.value(&item, depth + 1)?;
        }
        self.close("]", empty, depth)
    }

    fn map(&mut self, map: &Value, depth: usize) -> Result<(), Error> {
        self.budget.bytes(PAIR * entries(map))?;
        let mut keys: Vec<Value> = map.try_iter()?.collect();
        let layout = self.layout;
        if layout.sort_keys {
            keys.sort();
        }
        let mut empty = true;
        self.put("{")?;
        for key in keys {
            self.next_entry(&mut empty, depth)?;
            self.key(&key)?;
            self.put(&layout.key)?;
            self.value(&map.get_item(&key)?, depth + 1)?;
        }
        self.close("}", empty, depth)
    }

    /// JSON's keys are strings: Python writes the others as it would write their values.
    fn key(&mut self, key: &Value) -> Result<(), Error> {
        match key.kind() {
            ValueKind::String => self.text(key.as_str().unwrap_or_default()),
            ValueKind::None | ValueKind::Bool | ValueKind::Number => {
                self.put("\"")?;
                self.value(key, 0)?;
                self.put("\"")
            }
            _ => Err(not_json(key)),
        }
    }

    fn next_entry(&mut self, empty: &mut bool, depth: usize) -> Result<(), Error> {
        let layout = self.layout;
        if !std::mem::replace(empty, false) {
            self.put(&layout.item)?;
        }
        self.new_line(depth + 1)
    }

    fn close(&mut self, bracket: &str, empty: bool, depth: usize) -> Result<(), Error> {
        if !empty {
            self.new_line(depth)?;
        }
        self.put(bracket)
    }

    fn new_line(&mut self, depth: usize) -> Result<(), Error> {
        let layout = self.layout;
        let Some(indent) = &layout.indent else { return Ok(()) };
        self.put("\n")?;
        (0..depth).try_for_each(|_| self.put(indent))
    }

    /// Python's JSON has names for the numbers that JSON lacks.
    fn float(&mut self, number: f64) -> Result<(), Error> {
        if number.is_finite() {
            self.put(&python_float::repr(number))
        } else if number.is_nan() {
            self.put("NaN")
        } else {
            self.put(if number < 0.0 { "-Infinity" } else { "Infinity" })
        }
    }

    fn text(&mut self, text: &str) -> Result<(), Error> {
        // An escape has six bytes in place of one, or twelve in place of four.
        let escapes = |character: char| character < ' ' || !character.is_ascii();
        let escapes = text.chars().filter(|&character| escapes(character)).count();
        self.budget.bytes(2 * text.len() as u64 + 12 * escapes as u64)?;
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
                _ if character >= ' ' && !self.layout.ensure_ascii => self.out.push(character),
                _ => self.escape(character),
            }
        }
        self.out.push('"');
        Ok(())
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
