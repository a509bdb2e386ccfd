//! `oneOf` as `anyOf` where a value can satisfy one part at most.
//!
//! The parser finds that out by itself, but not through references, as the unions of pydantic have.

use std::cell::Cell;

use serde_json::{Map, Value};

/// Limit of work for one document: schemas, names and pairs of values. A `oneOf` that needs more stays
/// as it is.
const MAX_WORK: usize = 100_000;

/// References, parts and properties in each other that are followed.
const MAX_DEPTH: usize = 12;

/// The types of values. An integer is a number.
const TYPES: [&str; 6] = ["null", "boolean", "number", "string", "array", "object"];

/// Rewrites a prepared schema and its definitions.
pub(super) fn rewrite(root: &mut Map<String, Value>, definitions: &mut Map<String, Value>) {
    let known = definitions.clone();
    let search = Search { definitions: &known, work: Cell::new(0) };
    search.rewrite_map(root);
    definitions.values_mut().for_each(|schema| search.rewrite(schema));
}

struct Search<'a> {
    definitions: &'a Map<String, Value>,
    work: Cell<usize>,
}

/// Constraints on a value, collected from all parts of a schema that hold together.
#[derive(Default)]
struct Facts<'a> {
    types: Vec<&'static str>,
    /// The values that it may have, if they are listed.
    values: Vec<Vec<&'a Value>>,
    required: Vec<&'a str>,
    properties: Vec<&'a Map<String, Value>>,
    /// Whether one part has no properties but its own, and those.
    closed: Option<&'a Map<String, Value>>,
    /// Schemas one of which holds.
    alternatives: Vec<&'a Vec<Value>>,
}

impl<'a> Search<'a> {
    fn rewrite(&self, schema: &mut Value) {
        match schema {
            Value::Object(map) => self.rewrite_map(map),
            Value::Array(list) => list.iter_mut().for_each(|one| self.rewrite(one)),
            _ => {}
        }
    }

    fn rewrite_map(&self, map: &mut Map<String, Value>) {
        for (keyword, value) in &mut *map {
            match (keyword.as_str(), value) {
                ("const" | "enum", _) => {}
                ("properties" | "patternProperties", Value::Object(named)) => {
                    named.values_mut().for_each(|schema| self.rewrite(schema));
                }
                (_, value) => self.rewrite(value),
            }
        }
        let Some(Value::Array(parts)) = map.get("oneOf") else { return };
        if map.contains_key("anyOf") || !self.are_disjoint(parts) {
            return;
        }
        let renamed = std::mem::take(map).into_iter().map(|(keyword, value)| {
            let name = if keyword == "oneOf" { "anyOf".to_owned() } else { keyword };
            (name, value)
        });
        *map = renamed.collect();
    }

    /// Counts work; `None` beyond the most of it.
    fn spend(&self, work: usize) -> Option<()> {
        self.work.set(self.work.get().saturating_add(work));
        (self.work.get() <= MAX_WORK).then_some(())
    }

    fn are_disjoint(&self, parts: &[Value]) -> bool {
        let mut pairs = parts.iter().enumerate();
        pairs.all(|(index, one)| {
            parts[index + 1..].iter().all(|other| self.differ(one, other, 0).unwrap_or(false))
        })
    }

    /// Whether no value satisfies both; `None` if that takes too long to find out.
    fn differ<'b>(&self, one: &'b Value, other: &'b Value, depth: usize) -> Option<bool>
    where
        'a: 'b,
    {
        let (first, second) = (self.facts(one, depth)?, self.facts(other, depth)?);
        let mut types = first.types.iter().filter(|kind| second.types.contains(kind));
        let are_objects = match types.next() {
            None => return Some(true),
            Some(&kind) => kind == "object" && types.next().is_none(),
        };
        for own in &first.values {
            for its in &second.values {
                self.spend(own.len().saturating_mul(its.len()))?;
                if !own.iter().any(|one| its.iter().any(|other| equal(one, other))) {
                    return Some(true);
                }
            }
        }
        if are_objects {
            for name in first.required.iter().chain(&second.required) {
                if self.differ_by(name, &first, &second, depth)? {
                    return Some(true);
                }
            }
        }
        for (alternatives, rest) in [(&first.alternatives, other), (&second.alternatives, one)] {
            for parts in alternatives {
                let mut all = true;
                for part in *parts {
                    all = all && self.differ(part, rest, depth + 1)?;
                }
                if all {
                    return Some(true);
                }
            }
        }
        Some(false)
    }

    /// Whether two objects, one of which has this property, cannot be the same.
    fn differ_by(
        &self,
        name: &str,
        one: &Facts<'_>,
        other: &Facts<'_>,
        depth: usize,
    ) -> Option<bool> {
        for facts in [one, other] {
            if facts.closed.is_some_and(|properties| !properties.contains_key(name)) {
                return Some(true);
            }
        }
        for own in one.properties.iter().filter_map(|properties| properties.get(name)) {
            for its in other.properties.iter().filter_map(|properties| properties.get(name)) {
                if self.differ(own, its, depth + 1)? {
                    return Some(true);
                }
            }
        }
        Some(false)
    }

    fn facts<'b>(&self, schema: &'b Value, depth: usize) -> Option<Facts<'b>>
    where
        'a: 'b,
    {
        let mut facts = Facts { types: TYPES.to_vec(), ..Facts::default() };
        self.add(&mut facts, schema, depth)?;
        Some(facts)
    }

    fn add<'b>(&self, facts: &mut Facts<'b>, schema: &'b Value, depth: usize) -> Option<()>
    where
        'a: 'b,
    {
        self.spend(1)?;
        if depth > MAX_DEPTH {
            return None;
        }
        let map = match schema {
            Value::Object(map) => map,
            Value::Bool(false) => {
                facts.types.clear();
                return Some(());
            }
            _ => return Some(()),
        };
        let texts =
            |value: &'b Value| value.as_array().into_iter().flatten().filter_map(Value::as_str);
        let properties = map.get("properties").and_then(Value::as_object);
        facts.properties.extend(properties);
        if map.get("additionalProperties") == Some(&Value::Bool(false))
            && !map.contains_key("patternProperties")
            && let Some(properties) = properties
        {
            facts.closed = Some(properties);
        }
        for (keyword, value) in map {
            match keyword.as_str() {
                "type" => {
                    let named = |kind: &str| match value {
                        Value::String(name) => is_kind(name, kind),
                        names => texts(names).any(|name| is_kind(name, kind)),
                    };
                    facts.types.retain(|kind| named(kind));
                }
                "const" => facts.add_values(vec![value]),
                "enum" => {
                    self.spend(value.as_array().map_or(0, Vec::len))?;
                    facts.add_values(value.as_array().into_iter().flatten().collect());
                }
                "required" => {
                    self.spend(value.as_array().map_or(0, Vec::len))?;
                    facts.required.extend(texts(value));
                }
                "$ref" => {
                    let target = value.as_str().and_then(|text| text.strip_prefix("#/$defs/"));
                    if let Some(target) = target.and_then(|name| self.definitions.get(name)) {
                        self.add(facts, target, depth + 1)?;
                    }
                }
                "allOf" => {
                    for part in value.as_array().into_iter().flatten() {
                        self.add(facts, part, depth + 1)?;
                    }
                }
                "anyOf" | "oneOf" => facts.alternatives.extend(value.as_array()),
                _ => {}
            }
        }
        Some(())
    }
}

impl<'a> Facts<'a> {
    fn add_values(&mut self, values: Vec<&'a Value>) {
        self.types.retain(|kind| values.iter().any(|value| kind_of(value) == *kind));
        self.values.push(values);
    }
}

/// Whether a type of a schema has values of a kind.
fn is_kind(name: &str, kind: &str) -> bool {
    name == kind || name == "integer" && kind == "number"
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Whether two values may be the same. Numbers in others are left aside.
fn equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        (Value::Array(_), Value::Array(_)) | (Value::Object(_), Value::Object(_)) => true,
        _ => one == other,
    }
}
