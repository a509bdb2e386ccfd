//! The properties that schemas list for one value.

use serde_json::{Map, Value};

/// Properties and items that several schemas for one value list together.
#[derive(Clone, Debug, Default)]
pub(super) struct Listed {
    /// Names of properties, in their order. Each has the value `true`.
    pub(super) names: Map<String, Value>,
    /// Expressions for names.
    pub(super) patterns: Map<String, Value>,
    /// Whether there is a list of properties at all, even an empty one.
    pub(super) has_list: bool,
    /// Whether more properties are allowed by the schema's own words.
    pub(super) is_open: bool,
    /// Whether alternatives list properties, so that not all are allowed together.
    pub(super) has_alternatives: bool,
    /// The least number of properties.
    least: u64,
}

impl Listed {
    /// Adds what another schema for the same value lists.
    pub(super) fn add(&mut self, other: &Self) {
        add_all(&mut self.names, &other.names);
        add_all(&mut self.patterns, &other.patterns);
        self.has_list |= other.has_list;
        self.is_open |= other.is_open;
        self.has_alternatives |= other.has_alternatives;
        self.least = self.least.max(other.least);
    }

    pub(super) fn is_nothing(&self) -> bool {
        self.len() == 0 && !self.has_list && !self.is_open
    }

    /// Whether no other properties are generated. An object that has to have more stays open.
    pub(super) fn is_closed(&self) -> bool {
        let enough = !self.patterns.is_empty() || self.names.len() as u64 >= self.least;
        self.has_list && !self.is_open && enough
    }

    /// Names and expressions.
    pub(super) fn len(&self) -> usize {
        self.names.len() + self.patterns.len()
    }

    /// A text that tells it from others.
    #[expect(clippy::format_push_string, reason = "other ways are larger in WebAssembly")]
    pub(super) fn key(&self) -> String {
        let mut key = format!("{}{}{}", self.has_list, self.is_open, self.least);
        for names in [&self.names, &self.patterns] {
            key.push(';');
            for name in names.keys() {
                key += &format!("{}:{name}", name.len()); // no name looks like two
            }
        }
        key
    }
}

/// The properties and items that a schema lists itself.
pub(super) fn own(map: &Map<String, Value>) -> Listed {
    let mut own = Listed::default();
    if let Some(Value::Object(names)) = map.get("properties") {
        own.has_list = true;
        add_all(&mut own.names, names);
    }
    if let Some(Value::Object(patterns)) = map.get("patternProperties") {
        own.has_list = true;
        add_all(&mut own.patterns, patterns);
    }
    for name in map.get("required").and_then(Value::as_array).into_iter().flatten() {
        let name = name.as_str().unwrap_or_default();
        own.names.entry(name).or_insert(true.into());
    }
    let more = map.get("additionalProperties");
    own.is_open = more.is_some_and(|more| more != &Value::Bool(false))
        || map.contains_key("const")
        || map.contains_key("enum");
    own.least = map.get("minProperties").and_then(Value::as_u64).unwrap_or(0);
    own
}

/// Adds the names that are missing, with the schema `true`.
pub(super) fn add_all(known: &mut Map<String, Value>, names: &Map<String, Value>) {
    for name in names.keys() {
        if !known.contains_key(name) {
            known.insert(name.clone(), true.into());
        }
    }
}
