//! Bounds on a schema that hold before the parser compiles it by recursion.

use std::collections::{BTreeSet, HashMap, HashSet};

use serde_json::{Map, Value};

use super::NESTED;
use super::in_place::{InPlace, Totals};
use crate::expressions::{check_patterns, check_text, classes};
use crate::limits::at_most;
use crate::size::check_json;
use crate::{GrammarError, GrammarLimits};

/// The most properties of an object that bounds their number: each may be the one that is there.
const MAX_COUNTED: usize = 300;

/// The most pairs of alternatives of `oneOf` that are compared, each property by property.
const MAX_COMPARED: usize = 20_000_000;

/// Keywords with schemas for the same value, which the parser intersects one by one.
const APPLICATORS: [&str; 6] = ["const", "enum", "allOf", "anyOf", "oneOf", "$ref"];

/// Keywords that make a terminal of a schema. Without them it is one of a few.
const OF_VALUES: [&str; 11] = [
    "const",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "maxLength",
    "maximum",
    "minLength",
    "minimum",
    "multipleOf",
    "pattern",
];

const PROPERTIES: &str = "properties of an object";

/// Classes of characters that a format or a length counts for.
const OTHER_CLASSES: u64 = 10;

/// Refuses a document whose compilation would take too much stack, time or memory.
///
/// The walk is the parser's: a reference is followed where it is met first, and keywords between
/// applicators are compiled together, arrays before objects.
pub(crate) fn check(document: &Value, limits: &GrammarLimits) -> Result<(), GrammarError> {
    check_json(document, limits)?;
    let mut bounds = Bounds {
        document,
        limits,
        referenced: HashMap::new(),
        names: HashSet::new(),
        values: HashSet::new(),
        patterns: BTreeSet::new(),
        totals: Totals::default(),
    };
    bounds.schema(document, 0)?;
    check_patterns(bounds.patterns)
}

struct Bounds<'a> {
    document: &'a Value,
    limits: &'a GrammarLimits,
    /// What is known of referenced schemas; of one that is looked at, nothing yet.
    referenced: HashMap<&'a str, InPlace>,
    names: HashSet<&'a str>,
    /// Schemas and constants that become terminals.
    values: HashSet<&'a Value>,
    patterns: BTreeSet<&'a str>,
    totals: Totals,
}

impl<'a> Bounds<'a> {
    fn schema(&mut self, schema: &'a Value, depth: usize) -> Result<InPlace, GrammarError> {
        at_most(NESTED, self.limits.depth, depth)?;
        let Value::Object(map) = schema else { return Ok(InPlace::any()) };
        let mut all = InPlace::any();
        let mut beside: Vec<(&'a str, &'a Value)> = Vec::new();
        for (keyword, value) in map {
            if !APPLICATORS.contains(&keyword.as_str()) {
                beside.push((keyword, value));
                continue;
            }
            self.flush(&mut beside, &mut all, depth)?;
            all.and(self.applied(keyword, value, depth)?);
        }
        self.flush(&mut beside, &mut all, depth)?;
        if map.keys().any(|keyword| OF_VALUES.contains(&keyword.as_str())) {
            self.values.insert(schema);
        }
        for name in own_names(map) {
            self.names.insert(name);
            all.names += 1;
        }
        self.check_names(map, &all)?;
        all.check(&mut self.totals)?;
        Ok(all)
    }

    /// A keyword whose schemas are for the same value.
    fn applied(
        &mut self,
        keyword: &str,
        value: &'a Value,
        depth: usize,
    ) -> Result<InPlace, GrammarError> {
        match (keyword, value) {
            ("$ref", Value::String(reference)) => self.reference(reference, depth),
            ("allOf", Value::Array(list)) => {
                let mut all = InPlace::any();
                for schema in list {
                    all.and(self.schema(schema, depth + 1)?);
                }
                Ok(all)
            }
            ("anyOf" | "oneOf", Value::Array(list)) => {
                let all: Result<Vec<_>, _> =
                    list.iter().map(|schema| self.schema(schema, depth + 1)).collect();
                let all = all?;
                if keyword == "oneOf" {
                    let names = all.iter().map(|one| one.names).max().unwrap_or(0);
                    let compared = all.len().saturating_mul(all.len()).saturating_mul(names + 1);
                    at_most("comparisons of the parts of `oneOf`", MAX_COMPARED, compared)?;
                }
                Ok(InPlace::one_of(&all))
            }
            ("enum", Value::Array(list)) => {
                let all: Result<Vec<_>, _> =
                    list.iter().map(|value| self.constant(value, depth + 1)).collect();
                Ok(InPlace { options: list.len().max(1) as u64, ..InPlace::one_of(&all?) })
            }
            ("const", value) => self.constant(value, depth + 1),
            _ => Ok(InPlace::any()), // which the parser refuses
        }
    }

    fn reference(&mut self, reference: &'a str, depth: usize) -> Result<InPlace, GrammarError> {
        if let Some(known) = self.referenced.get(reference) {
            return Ok(*known);
        }
        self.referenced.insert(reference, InPlace::any());
        let Some(target) = target(self.document, reference) else { return Ok(InPlace::any()) };
        let found = self.schema(target, depth + 1)?;
        self.referenced.insert(reference, found);
        Ok(found)
    }

    /// A constant, which becomes a schema: of an object, one with as many properties.
    fn constant(&mut self, value: &'a Value, depth: usize) -> Result<InPlace, GrammarError> {
        at_most(NESTED, self.limits.depth, depth)?;
        let mut all = InPlace::any();
        let parts: Vec<&'a Value> = match value {
            Value::Array(list) => list.iter().collect(),
            Value::Object(map) => {
                all.names = map.len();
                at_most(PROPERTIES, self.limits.properties, map.len())?;
                self.names.extend(map.keys().map(String::as_str));
                map.values().collect()
            }
            _ => return Ok(all),
        };
        for part in parts {
            self.values.insert(part);
            all.schemas = all.schemas.saturating_add(self.constant(part, depth + 1)?.schemas);
        }
        self.check_terminals()?;
        Ok(all)
    }

    /// Keywords that stand between applicators, with the schemas for parts of the value.
    fn flush(
        &mut self,
        keywords: &mut Vec<(&'a str, &'a Value)>,
        all: &mut InPlace,
        depth: usize,
    ) -> Result<(), GrammarError> {
        let order = ["prefixItems", "items", "additionalItems", "properties", "patternProperties"];
        let place = |name: &str| order.iter().position(|own| *own == name).unwrap_or(order.len());
        keywords.sort_by_key(|(name, _)| place(name));
        for (keyword, value) in keywords.drain(..) {
            let schemas: Vec<&'a Value> = match (keyword, value) {
                ("items" | "prefixItems", Value::Array(list)) => list.iter().collect(),
                ("properties" | "patternProperties", Value::Object(map)) => map.values().collect(),
                ("items" | "additionalItems" | "additionalProperties", schema) => vec![schema],
                _ => Vec::new(),
            };
            let mut own = InPlace { schemas: 0, ..InPlace::any() };
            for schema in schemas {
                let part = self.schema(schema, depth + 1)?;
                let is_reference = schema.as_object().is_some_and(|map| map.contains_key("$ref"));
                let schemas = if is_reference { 1 } else { part.schemas };
                own.schemas = own.schemas.saturating_add(schemas);
            }
            self.value(keyword, value, &mut own)?;
            all.and(own);
        }
        Ok(())
    }

    /// What a keyword itself says.
    fn value(
        &mut self,
        keyword: &str,
        value: &'a Value,
        own: &mut InPlace,
    ) -> Result<(), GrammarError> {
        match (keyword, value) {
            ("patternProperties", Value::Object(map)) => {
                own.patterns = map.len() as u64;
                own.pattern_bytes = map.keys().map(|pattern| pattern.len() as u64).sum();
                for pattern in map.keys() {
                    self.pattern(pattern)?;
                }
            }
            ("pattern", Value::String(pattern)) => {
                own.classes = classes(pattern);
                self.pattern(pattern)?;
            }
            ("format" | "minLength" | "maxLength", _) => own.classes = OTHER_CLASSES,
            _ => {}
        }
        Ok(())
    }

    fn pattern(&mut self, pattern: &'a str) -> Result<(), GrammarError> {
        check_text(pattern, self.limits)?;
        self.patterns.insert(pattern);
        Ok(())
    }

    /// Refuses too many properties of an object, each of which is compiled inside of the one
    /// before.
    fn check_names(&self, map: &Map<String, Value>, all: &InPlace) -> Result<(), GrammarError> {
        let is_counted = map.contains_key("minProperties") || map.contains_key("maxProperties");
        let most = if is_counted { MAX_COUNTED } else { self.limits.properties };
        at_most(PROPERTIES, most.min(self.limits.properties), all.names)?;
        self.check_terminals()
    }

    fn check_terminals(&self) -> Result<(), GrammarError> {
        let terminals = self.names.len() + self.values.len();
        at_most("different names and values of a schema", self.limits.names, terminals)
    }
}

/// The properties of an object that a schema lists, and those that it only requires.
fn own_names(map: &Map<String, Value>) -> impl Iterator<Item = &str> {
    let listed = map.get("properties").and_then(Value::as_object);
    let required = map.get("required").and_then(Value::as_array).into_iter().flatten();
    let more = required.filter_map(Value::as_str);
    let more = more.filter(move |name| listed.is_none_or(|listed| !listed.contains_key(*name)));
    listed.into_iter().flat_map(Map::keys).map(String::as_str).chain(more)
}

/// What the parser finds for a reference.
fn target<'a>(document: &'a Value, reference: &str) -> Option<&'a Value> {
    let pointer = reference.strip_prefix('#')?;
    if pointer.is_empty() || pointer == "/" {
        return Some(document);
    }
    pointer.strip_prefix('/')?.split('/').try_fold(document, |value, segment| match value {
        Value::Array(list) => list.get(segment.parse::<usize>().ok()?),
        Value::Object(map) => map.get(segment),
        _ => None,
    })
}
