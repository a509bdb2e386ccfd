//! Parameters of functions as calls in XML write them: one element each, whose text is a string as it
//! is, or a JSON value.

use std::{borrow::Cow, collections::HashSet};

use serde_json::{Map, Value};

/// What comes before the name of a parameter, between name and value, and behind the value.
pub const PARAMETER: [&str; 3] = ["<parameter=", ">\n", "\n</parameter>\n"];

/// The most references and parts of a schema in each other that are followed.
const MAX_DEPTH: usize = 16;

/// The most keywords and parts of them that are read. References can make a small schema a large tree.
const MAX_PARTS: usize = 10_000;

/// The keywords that bound strings, and those that bound numbers.
const STRING_BOUNDS: [&str; 3] = ["pattern", "minLength", "maxLength"];
const NUMBER_BOUNDS: [&str; 5] =
    ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"];

/// The values that a schema allows, as far as calls in XML need it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parameter {
    /// Their types.
    pub types: Types,
    /// The strings among them, where they are listed.
    pub choices: Option<Vec<String>>,
    /// The last keyword that bounds strings: `pattern`, `minLength` or `maxLength`.
    pub bound: Option<&'static str>,
    has_number_bounds: bool,
}

/// Types of JSON values that a schema allows; all of them where it says nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Types(u8);

impl Parameter {
    /// The values of a parameter of a function, by the schema of its arguments.
    #[must_use]
    pub fn named(name: &str, root: &Map<String, Value>) -> Self {
        let listed = root.get("properties").and_then(|properties| properties.get(name));
        let schema = listed.or_else(|| root.get("additionalProperties"));
        let mut left = MAX_PARTS;
        schema.map(|schema| Self::of(schema, root, 0, &mut left)).unwrap_or_default()
    }

    fn of(schema: &Value, root: &Map<String, Value>, depth: usize, left: &mut usize) -> Self {
        let mut values = Self::default();
        values.narrow(schema, root, depth, left);
        if values.types.has_strings() && values.has_number_bounds {
            values.types.0 &= !Types::NUMBERS; // they are strings, which are always valid
        }
        values
    }

    /// Removes the values that a schema does not allow.
    fn narrow(
        &mut self,
        schema: &Value,
        root: &Map<String, Value>,
        depth: usize,
        left: &mut usize,
    ) {
        let Value::Object(map) = schema else { return };
        if depth > MAX_DEPTH {
            return;
        }
        for (keyword, value) in map {
            let mut any = Self { types: Types::NONE, choices: Some(vec![]), ..Self::default() };
            let list = value.as_array().map_or(&[][..], Vec::as_slice);
            let Some(rest) = left.checked_sub(1 + list.len()) else { return };
            *left = rest;
            match keyword.as_str() {
                "$ref" => {
                    if let Some(target) = target(value, root) {
                        self.narrow(target, root, depth + 1, left);
                    }
                    continue;
                }
                "allOf" => {
                    for part in list {
                        self.narrow(part, root, depth + 1, left);
                    }
                    continue;
                }
                "type" => {
                    any.choices = None;
                    let names = if list.is_empty() { std::slice::from_ref(value) } else { list };
                    for name in names {
                        any.types.0 |= Types::named(name).0;
                    }
                }
                "const" => any.add(value),
                "enum" => list.iter().for_each(|value| any.add(value)),
                "anyOf" | "oneOf" => list.iter().for_each(|part| {
                    any.join(Self::of(part, root, depth + 1, left));
                }),
                other => {
                    let bound = STRING_BOUNDS.into_iter().find(|bound| *bound == other);
                    self.bound = bound.or(self.bound);
                    self.has_number_bounds |= NUMBER_BOUNDS.contains(&other);
                    continue;
                }
            }
            self.types.0 &= any.types.0;
            self.bound = any.bound.or(self.bound);
            self.has_number_bounds |= any.has_number_bounds;
            if let Some(choices) = any.choices {
                match &mut self.choices {
                    Some(own) => {
                        let choices: HashSet<_> = choices.iter().collect();
                        own.retain(|choice| choices.contains(choice));
                    }
                    own => *own = Some(choices),
                }
            }
        }
    }

    /// Adds a value to those that are allowed.
    fn add(&mut self, value: &Value) {
        self.types.0 |= Types::of_value(value).0;
        if let (Some(choices), Value::String(choice)) = (&mut self.choices, value) {
            choices.push(choice.clone());
        }
    }

    /// Adds the values of another parameter to those that are allowed.
    fn join(&mut self, other: Self) {
        self.types.0 |= other.types.0;
        self.bound = other.bound.or(self.bound);
        self.has_number_bounds |= other.has_number_bounds;
        match other.choices {
            _ if !other.types.has_strings() => {}
            Some(others) => {
                if let Some(choices) = &mut self.choices {
                    choices.extend(others);
                }
            }
            None => self.choices = None,
        }
    }
}

impl Default for Types {
    fn default() -> Self {
        Self::ALL
    }
}

impl Types {
    const NUMBERS: u8 = 4 | 8;
    const STRING: Self = Self(64);
    const ALL: Self = Self(127);
    const NONE: Self = Self(0);

    /// Whether its values are strings alone, which are written as they are: the schema says so, or says
    /// nothing.
    #[must_use]
    pub fn is_text(self) -> bool {
        matches!(self, Self::STRING | Self::ALL | Self::NONE)
    }

    /// Whether strings are among its values.
    #[must_use]
    pub fn has_strings(self) -> bool {
        self.has(Self::STRING)
    }

    /// The JSON text of a value that is no [text](Self::is_text): JSON, of which Python's words for
    /// constants are taken, too, and else a string. Where strings are allowed all is a string but null,
    /// booleans and numbers of the other types.
    #[must_use]
    pub fn json(self, text: &str) -> Cow<'_, str> {
        let words = match text {
            "True" => "true",
            "False" => "false",
            "None" => "null",
            other => other,
        };
        let is_taken = |value: &Value| {
            let is_scalar = !value.is_string() && !value.is_array() && !value.is_object();
            !self.has_strings()
                || is_scalar && self.has(Self::of_value(value)) && words.trim() == words
        };
        match serde_json::from_str::<Value>(words) {
            Ok(value) if is_taken(&value) => Cow::Borrowed(words),
            _ => Cow::Owned(Value::from(text).to_string()),
        }
    }

    fn has(self, types: Self) -> bool {
        self.0 & types.0 == types.0 && types != Self::NONE
    }

    fn of_value(value: &Value) -> Self {
        Self(match value {
            Value::Null => 1,
            Value::Bool(_) => 2,
            Value::Number(number) if number.is_f64() => Self::NUMBERS,
            Value::Number(_) => 4,
            Value::Array(_) => 16,
            Value::Object(_) => 32,
            Value::String(_) => Self::STRING.0,
        })
    }

    /// The type of a name of JSON Schema. Integers are numbers, too.
    fn named(name: &Value) -> Self {
        Self(match name.as_str().unwrap_or_default() {
            "null" => 1,
            "boolean" => 2,
            "integer" => 4,
            "number" => Self::NUMBERS,
            "array" => 16,
            "object" => 32,
            "string" => Self::STRING.0,
            _ => 0,
        })
    }
}

/// The schema of a reference within the schema.
fn target<'a>(reference: &Value, root: &'a Map<String, Value>) -> Option<&'a Value> {
    let mut names = reference.as_str()?.strip_prefix("#/")?.split('/');
    let name = |name: &str| name.replace("~1", "/").replace("~0", "~");
    let first = root.get(&name(names.next()?))?;
    names.try_fold(first, |value, part| match value {
        Value::Object(map) => map.get(&name(part)),
        Value::Array(list) => list.get(part.parse::<usize>().ok()?),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn types(schema: &Value) -> Types {
        parameter(schema).types
    }

    fn parameter(schema: &Value) -> Parameter {
        let root = json!({"properties": {"x": schema}, "$defs": {"a": {"type": "integer"},
            "b": {"anyOf": [{"$ref": "#/$defs/a"}, {"type": "null"}]}, "loop": {"$ref": "#/$defs/loop"}}});
        let Value::Object(root) = root else { unreachable!("it is one") };
        Parameter::named("x", &root)
    }

    #[test]
    fn types_are_those_that_a_schema_allows() {
        for text in [
            json!({}),
            json!(true),
            json!({"type": "string", "format": "date"}),
            json!({"enum": ["a", "b"]}),
            json!({"const": "a"}),
            json!({"$ref": "#/$defs/loop"}),
            json!({"$ref": "#/nowhere"}),
            json!({"allOf": [{"type": ["string", "null"]}, {"type": "string"}]}),
        ] {
            assert!(types(&text).is_text(), "{text}");
        }
        for (schema, expected) in [
            (json!({"type": "number"}), Types(12)),
            (json!({"type": ["integer", "string"]}), Types(68)),
            (json!({"$ref": "#/$defs/b"}), Types(5)),
            (json!({"enum": [1, null, "x", []]}), Types(85)),
            (json!({"oneOf": [{"type": "object"}, {"const": true}]}), Types(34)),
            (json!({"anyOf": [{"type": "string"}, {"type": "number", "minimum": 1}]}), Types(64)),
        ] {
            assert_eq!(types(&schema), expected, "{schema}");
        }
        assert!(Parameter::named("x", &Map::new()).types.is_text());
    }

    /// All parts would be nine to the power of eight.
    #[test]
    fn schemas_that_references_make_large_are_read_in_part() {
        let again = json!({"$ref": "#/$defs/a"});
        for keyword in ["anyOf", "oneOf", "allOf"] {
            let root = json!({"properties": {"x": again}, "$defs": {"a": {keyword: [again, again, again, again,
                again, again, again, again, again, {"type": "string"}]}}});
            let Value::Object(root) = root else { unreachable!("it is one") };
            assert!(Parameter::named("x", &root).types.is_text(), "{keyword}");
        }
    }

    #[test]
    fn strings_that_are_listed_are_the_choices() {
        for (schema, expected) in [
            (json!({"enum": ["a", 1, "b"]}), Some(&["a", "b"][..])),
            (json!({"anyOf": [{"const": "a"}, {"type": "null"}]}), Some(&["a"])),
            (json!({"anyOf": [{"const": "a"}, {"type": "string"}]}), None),
            (json!({"enum": ["a", "b"], "allOf": [{"enum": ["b", "c"]}]}), Some(&["b"])),
            (json!({"type": "string", "minLength": 2}), None),
        ] {
            let found = parameter(&schema);
            let expected = expected.map(|all| all.iter().map(ToString::to_string).collect());
            assert_eq!(found.choices, expected, "{schema}");
        }
        let bound = |schema| parameter(&schema).bound;
        assert_eq!(bound(json!({"anyOf": [{"pattern": "a"}, {"minimum": 1}]})), Some("pattern"));
        assert_eq!(bound(json!({"minimum": 1})), None);
    }

    #[test]
    fn values_are_json_or_strings() {
        let number = types(&json!({"type": "number"}));
        let either = types(&json!({"type": ["string", "integer", "null"]}));
        for (types, text, expected) in [
            (number, "2.5", "2.5"),
            (number, "True", "true"),
            (number, "two", "\"two\""),
            (number, "\"2\"", "\"2\""),
            (number, "1e999", "\"1e999\""),
            (either, "12", "12"),
            (either, "12.5", "\"12.5\""),
            (either, " 12", "\" 12\""),
            (either, "None", "null"),
            (either, "\"a\"", "\"\\\"a\\\"\""),
            (either, "[1]", "\"[1]\""),
            (types(&json!({"type": ["string", "array"]})), "[1]", "\"[1]\""),
            (either, "", "\"\""),
        ] {
            assert_eq!(types.json(text), expected, "{text}");
        }
    }
}
