//! Bounds on a schema that hold before the parser compiles it by recursion.

use serde_json::{Map, Value};

use super::NESTED;
use super::in_place::{InPlace, Totals, counted, saturated};
use super::kind::{Kind, PARTS};
use crate::GrammarLimits;
use crate::expressions::{check_patterns, check_text, classes};
use crate::limits::{Exceeded, at_most};
use crate::names::Names;
use crate::size::check_json;

/// The most properties of an object that bounds their number: each may be the one that is there.
const MAX_COUNTED: usize = 300;

/// The most pairs of alternatives of `oneOf` that are compared, each property by property.
const MAX_COMPARED: u32 = 20_000_000;

/// Classes of characters that a format or a length counts for.
const OTHER_CLASSES: u32 = 10;

/// Refuses a document whose compilation would take too much stack, time or memory.
///
/// The walk is the parser's: a reference is followed where it is met first, and keywords between
/// applicators are compiled together, arrays before objects.
pub(crate) fn check(document: &Value, limits: &GrammarLimits) -> Result<(), Exceeded> {
    check_json(document, limits)?;
    let mut bounds = Bounds {
        document,
        limits,
        references: Names::default(),
        referenced: Vec::new(),
        names: Names::default(),
        values: Names::default(),
        patterns: Names::default(),
        totals: Totals::default(),
    };
    bounds.schema(document, 0)?;
    check_patterns(&bounds.patterns)
}

struct Bounds<'a> {
    document: &'a Value,
    limits: &'a GrammarLimits,
    references: Names,
    /// What is known of referenced schemas; of one that is looked at, nothing yet.
    referenced: Vec<InPlace>,
    names: Names,
    /// What becomes a terminal: keywords of schemas, and constants.
    values: Names,
    patterns: Names,
    totals: Totals,
}

impl<'a> Bounds<'a> {
    fn schema(&mut self, schema: &'a Value, depth: usize) -> Result<InPlace, Exceeded> {
        at_most(NESTED, self.limits.depth, depth)?;
        let mut all = InPlace::any();
        let Value::Object(map) = schema else { return Ok(all) };
        let (mut beside, mut most) = (Vec::new(), self.limits.properties);
        for (keyword, value) in map {
            let kind = Kind::of(keyword);
            if kind.is_applicator() {
                self.parts(&mut beside, &mut all, depth)?;
                all.and(self.applied(kind, value, depth)?);
            } else {
                beside.push((kind, value));
            }
            if kind == Kind::Counted {
                most = most.min(MAX_COUNTED);
            }
        }
        self.parts(&mut beside, &mut all, depth)?;
        self.own_names(map, &mut all);
        self.own_value(map);
        self.check_names(most, &all)?;
        all.check(&mut self.totals)?;
        Ok(all)
    }

    /// A keyword whose schemas are for the same value.
    fn applied(&mut self, kind: Kind, value: &'a Value, depth: usize) -> Result<InPlace, Exceeded> {
        match (kind, value) {
            (Kind::Constant, value) => return self.constant(value, depth + 1, false),
            (Kind::Reference, Value::String(reference)) => {
                return self.reference(reference, depth);
            }
            _ => {}
        }
        let mut parts = Vec::new();
        for part in value.as_array().into_iter().flatten() {
            parts.push(if kind == Kind::Enumeration {
                self.constant(part, depth + 1, false)?
            } else {
                self.schema(part, depth + 1)?
            });
        }
        if kind == Kind::AllOf {
            let mut all = InPlace::any();
            for part in parts {
                all.and(part);
            }
            return Ok(all);
        }
        let one = InPlace::one_of(&parts);
        if kind == Kind::OneOf {
            let parts = saturated(parts.len());
            let compared = parts.saturating_mul(parts).saturating_mul(one.names.saturating_add(1));
            counted("comparisons of the parts of `oneOf`", MAX_COMPARED, compared)?;
        }
        Ok(one)
    }

    fn reference(&mut self, reference: &str, depth: usize) -> Result<InPlace, Exceeded> {
        let number = self.references.number(reference);
        if let Some(known) = self.referenced.get(number) {
            return Ok(*known);
        }
        self.referenced.push(InPlace::any());
        let Some(target) = target(self.document, reference) else { return Ok(InPlace::any()) };
        let found = self.schema(target, depth + 1)?;
        self.referenced[number] = found;
        Ok(found)
    }

    /// A constant, which becomes a schema: of an object, one with as many properties. What is
    /// `inside` of another becomes a terminal.
    fn constant(
        &mut self,
        value: &'a Value,
        depth: usize,
        inside: bool,
    ) -> Result<InPlace, Exceeded> {
        at_most(NESTED, self.limits.depth, depth)?;
        let mut all = InPlace::any();
        let mut parts: Vec<&'a Value> = Vec::new();
        match value {
            Value::Array(list) => parts.extend(list),
            Value::Object(map) => {
                all.names = saturated(map.len());
                for (name, part) in map {
                    self.names.number(name);
                    parts.push(part);
                }
            }
            scalar if inside => {
                self.values.number(&scalar.to_string());
            }
            _ => {}
        }
        for part in parts {
            let part = self.constant(part, depth + 1, true)?;
            all.schemas = all.schemas.saturating_add(part.schemas);
        }
        self.check_names(self.limits.properties, &all)?;
        Ok(all)
    }

    /// Keywords that stand between applicators, with the schemas for parts of the value. The
    /// parser takes arrays before objects.
    fn parts(
        &mut self,
        keywords: &mut Vec<(Kind, &'a Value)>,
        all: &mut InPlace,
        depth: usize,
    ) -> Result<(), Exceeded> {
        for kind in PARTS {
            for &(_, value) in keywords.iter().filter(|(own, _)| *own == kind) {
                let mut own = InPlace::nothing();
                let schemas: Vec<&'a Value> = match value {
                    Value::Array(list) => list.iter().collect(),
                    Value::Object(map) if kind.has_names() => map.values().collect(),
                    schema => vec![schema],
                };
                for schema in schemas {
                    let part = self.schema(schema, depth + 1)?;
                    let is_reference = schema.get("$ref").is_some();
                    let schemas = if is_reference { 1 } else { part.schemas };
                    own.schemas = own.schemas.saturating_add(schemas);
                }
                all.and(own);
            }
        }
        for (kind, value) in keywords.drain(..) {
            all.and(self.text(kind, value)?);
        }
        Ok(())
    }

    /// What a keyword itself says of texts and names.
    fn text(&mut self, kind: Kind, value: &Value) -> Result<InPlace, Exceeded> {
        let mut own = InPlace::nothing();
        match (kind, value) {
            (Kind::PatternProperties, Value::Object(map)) => {
                own.patterns = saturated(map.len());
                for pattern in map.keys() {
                    own.pattern_bytes = own.pattern_bytes.saturating_add(saturated(pattern.len()));
                    self.pattern(pattern)?;
                }
            }
            (Kind::Pattern, Value::String(pattern)) => {
                own.classes = classes(pattern);
                self.pattern(pattern)?;
            }
            (Kind::Text, _) => own.classes = OTHER_CLASSES,
            _ => {}
        }
        Ok(own)
    }

    fn pattern(&mut self, pattern: &str) -> Result<(), Exceeded> {
        check_text(pattern, self.limits)?;
        self.patterns.number(pattern);
        Ok(())
    }

    /// The properties of an object that a schema lists, and those that it only requires.
    fn own_names(&mut self, map: &'a Map<String, Value>, all: &mut InPlace) {
        let listed = map.get("properties").and_then(Value::as_object);
        let required = map.get("required").and_then(Value::as_array).into_iter().flatten();
        let more = required.filter_map(Value::as_str);
        let more = more.filter(|name| listed.is_none_or(|listed| !listed.contains_key(*name)));
        for name in listed.into_iter().flat_map(Map::keys).map(String::as_str).chain(more) {
            self.names.number(name);
            all.names = all.names.saturating_add(1);
        }
    }

    /// What a schema says of its value, of which terminals are made.
    fn own_value(&mut self, map: &Map<String, Value>) {
        let mut words = String::new();
        for (keyword, value) in map.iter().filter(|(keyword, _)| Kind::of(keyword).makes_terminal())
        {
            words += keyword;
            words += &value.to_string();
        }
        if !words.is_empty() {
            self.values.number(&words);
        }
    }

    /// Refuses too many properties of an object, each of which is compiled inside of the one
    /// before, and too many terminals.
    fn check_names(&self, most: usize, all: &InPlace) -> Result<(), Exceeded> {
        at_most("properties of an object", most, all.names as usize)?;
        let terminals = self.names.len() + self.values.len();
        at_most("different names and values of a schema", self.limits.names, terminals)
    }
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
