//! Parameters of functions as calls in XML write them: one element each, whose text is a string as it
//! is, or a JSON value.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::Tool;

/// What comes before the name of a parameter, between name and value, and behind the value.
pub const PARAMETER: [&str; 3] = ["<parameter=", ">\n", "\n</parameter>\n"];

/// The most references and parts of a schema in each other that are followed.
const MAX_DEPTH: usize = 16;

/// The keywords that bound strings and numbers.
const BOUNDS: [&str; 8] = [
    "pattern",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
];

/// The parameters of a function, by its schema.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parameters {
    /// Those that are listed, in their order.
    pub listed: Vec<(String, Parameter)>,
    /// All others.
    pub others: Parameter,
}

/// The values that a schema allows, as far as calls in XML need it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parameter {
    /// Their types.
    pub types: Types,
    /// The strings among them, where they are listed.
    pub choices: Option<Vec<String>>,
    /// Keywords that bound strings and numbers.
    pub bounds: Vec<&'static str>,
}

/// Types of JSON values that a schema allows; all of them where it says nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Types(u8);

impl Parameters {
    /// The parameters of a function.
    #[must_use]
    pub fn of(tool: &Tool) -> Self {
        let Some(root) = &tool.parameters else { return Self::default() };
        let values = |schema: &Value| Parameter::of(schema, root, 0);
        let properties = root.get("properties").and_then(Value::as_object);
        let listed = properties.into_iter().flatten();
        let listed = listed.map(|(name, schema)| (name.clone(), values(schema))).collect();
        let others = root.get("additionalProperties").map(values).unwrap_or_default();
        Self { listed, others }
    }

    /// The values of a parameter.
    #[must_use]
    pub fn of_name(&self, name: &str) -> &Parameter {
        let listed = self.listed.iter().find(|(listed, _)| listed == name);
        listed.map_or(&self.others, |(_, values)| values)
    }
}

impl Parameter {
    fn of(schema: &Value, root: &Map<String, Value>, depth: usize) -> Self {
        let Value::Object(map) = schema else { return Self::default() };
        if depth > MAX_DEPTH {
            return Self::default();
        }
        let parts = |value: &Value| {
            let parts = value.as_array().into_iter().flatten();
            parts.map(|part| Self::of(part, root, depth + 1)).collect::<Vec<_>>()
        };
        let all = |values: Vec<Self>| values.into_iter().fold(Self::default(), Self::and);
        let any = |values: Vec<Self>| values.into_iter().fold(Self::none(), Self::or);
        let listed = |values: &[Value]| any(values.iter().map(Self::of_value).collect());
        all(map
            .iter()
            .map(|(keyword, value)| match (keyword.as_str(), value) {
                ("type", Value::String(name)) => Self::of_type(name),
                ("type", Value::Array(names)) => {
                    any(names.iter().filter_map(Value::as_str).map(Self::of_type).collect())
                }
                ("const", value) => Self::of_value(value),
                ("enum", Value::Array(values)) => listed(values),
                ("anyOf" | "oneOf", value) => any(parts(value)),
                ("allOf", value) => all(parts(value)),
                ("$ref", value) => target(value, root)
                    .map(|target| Self::of(target, root, depth + 1))
                    .unwrap_or_default(),
                (keyword, _) => {
                    let bounds = BOUNDS.into_iter().filter(|bound| *bound == keyword).collect();
                    Self { bounds, ..Self::default() }
                }
            })
            .collect())
    }

    fn of_type(name: &str) -> Self {
        Self { types: Types::named(name), ..Self::default() }
    }

    fn of_value(value: &Value) -> Self {
        let choices = value.as_str().map(str::to_owned).into_iter().collect();
        Self { types: Types::of_value(value), choices: Some(choices), bounds: vec![] }
    }

    fn none() -> Self {
        Self { types: Types::NONE, choices: Some(vec![]), bounds: vec![] }
    }

    /// What both allow.
    fn and(mut self, other: Self) -> Self {
        self.types.0 &= other.types.0;
        self.choices = match (self.choices, other.choices) {
            (Some(mut own), Some(others)) => {
                own.retain(|choice| others.contains(choice));
                Some(own)
            }
            (own, others) => own.or(others),
        };
        self.bounds.extend(other.bounds);
        self
    }

    /// What one of them allows.
    fn or(self, other: Self) -> Self {
        let strings = |values: &Self| match values.types.has_strings() {
            true => values.choices.clone(),
            false => Some(vec![]),
        };
        let choices = strings(&self).zip(strings(&other));
        Self {
            types: Types(self.types.0 | other.types.0),
            choices: choices.map(|(own, others)| [own, others].concat()),
            bounds: [self.bounds, other.bounds].concat(),
        }
    }
}

impl Default for Types {
    fn default() -> Self {
        Self::ALL
    }
}

impl Types {
    /// The types by the names of JSON Schema. Integers are numbers, too.
    const NAMES: [(&str, Self); 7] = [
        ("null", Self(1)),
        ("boolean", Self(2)),
        ("integer", Self(4)),
        ("number", Self(4 | 8)),
        ("array", Self(16)),
        ("object", Self(32)),
        ("string", Self::STRING),
    ];
    const STRING: Self = Self(64);
    const ALL: Self = Self(127);
    const NONE: Self = Self(0);

    /// Whether its values are strings, which are written as they are: the schema says so, or says
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

    /// The names of the types but strings.
    pub fn names_without_strings(self) -> impl Iterator<Item = &'static str> {
        let [others @ .., _] = Self::NAMES;
        others.into_iter().filter(move |(_, types)| self.has(*types)).map(|(name, _)| name)
    }

    /// The JSON text of a value that is no [text](Self::is_text): JSON, of which Python's words for
    /// constants are taken, too. Other texts are strings, and where strings are allowed what has none of the
    /// other types.
    #[must_use]
    pub fn json(self, text: &str) -> Cow<'_, str> {
        let words = match text {
            "True" => "true",
            "False" => "false",
            "None" => "null",
            other => other,
        };
        let is_taken = |value: &Value| {
            !self.has_strings() || self.has(Self::of_value(value)) && words.trim() == words
        };
        match serde_json::from_str::<Value>(words) {
            Ok(value) if !(self.has_strings() && value.is_string()) && is_taken(&value) => {
                Cow::Borrowed(words)
            }
            _ => Cow::Owned(Value::from(text).to_string()),
        }
    }

    fn has(self, types: Self) -> bool {
        self.0 & types.0 == types.0 && types != Self::NONE
    }

    fn of_value(value: &Value) -> Self {
        let name = match value {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Number(number) if number.is_f64() => "number",
            Value::Number(_) => "integer",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        };
        Self::named(name)
    }

    fn named(name: &str) -> Self {
        let named = Self::NAMES.into_iter().find(|(known, _)| *known == name);
        named.map_or(Self::NONE, |(_, types)| types)
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
        Parameters::of(&Tool::new("f").parameters(root)).of_name("x").clone()
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
            (json!({"type": "number"}), &["integer", "number"][..]),
            (json!({"type": ["integer", "string"]}), &["integer"]),
            (json!({"$ref": "#/$defs/b"}), &["null", "integer"]),
            (json!({"enum": [1, null, "x", []]}), &["null", "integer", "array"]),
            (json!({"oneOf": [{"type": "object"}, {"const": true}]}), &["boolean", "object"]),
        ] {
            let found = types(&schema);
            assert!(!found.is_text(), "{schema}");
            assert_eq!(found.names_without_strings().collect::<Vec<_>>(), expected, "{schema}");
        }
        assert!(Parameters::default().of_name("x").types.is_text());
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
        let bounds = parameter(&json!({"anyOf": [{"pattern": "a"}, {"minimum": 1}]})).bounds;
        assert_eq!(bounds, ["pattern", "minimum"]);
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
            (either, "", "\"\""),
        ] {
            assert_eq!(types.json(text), expected, "{text}");
        }
    }
}
