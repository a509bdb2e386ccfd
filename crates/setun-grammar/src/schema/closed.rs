//! Closed objects: one whose properties are listed has no others.
//!
//! JSON Schema allows any further property where `additionalProperties` is absent. A model would
//! have to stop adding them by itself, so none are generated unless the schema says so. What
//! applies to one value counts together: an object of `allOf` has the properties of all parts.

mod listed;

use serde_json::{Map, Value, json};

use super::NESTED;
use crate::GrammarLimits;
use crate::limits::{Exceeded, at_most};
use listed::{Listed, add_all};

/// The most schemas and names that are looked at, with those that references repeat.
const MAX_WORK: usize = 1_000_000;

/// The keywords whose schemas are alternatives for the same value.
const ALTERNATIVES: [&str; 2] = ["anyOf", "oneOf"];

/// The definitions of a prepared document.
const DEFINITIONS: &str = "#/$defs/";

/// A prepared schema and its definitions.
type Document = (Map<String, Value>, Map<String, Value>);

/// Closes the objects of a prepared schema and of its definitions.
pub(super) fn close(
    root: &Map<String, Value>,
    definitions: &Map<String, Value>,
    limits: &GrammarLimits,
) -> Result<Document, Exceeded> {
    let mut closing = Closing {
        definitions,
        limits,
        listed: Vec::new(),
        variants: Vec::new(),
        waiting: Vec::new(),
        work: 0,
    };
    let root = closing.closed_map(root, &Listed::default(), 0)?;
    let mut closed = Map::new();
    while let Some(Variant { name, target, beside }) = closing.waiting.pop() {
        let Some(schema) = definitions.get(&target) else { continue };
        let schema = match beside {
            Some(beside) => closing.closed(schema, &beside, 0)?,
            None => closing.open(schema, 0)?,
        };
        closed.insert(name, schema);
    }
    Ok((root, closed))
}

struct Closing<'a> {
    definitions: &'a Map<String, Value>,
    limits: &'a GrammarLimits,
    /// The lists of definitions. One that is being read is empty.
    listed: Vec<(&'a str, Listed)>,
    /// Names of the definitions that are made, by their target and what stands beside it.
    variants: Vec<((&'a str, Option<String>), String)>,
    waiting: Vec<Variant>,
    work: usize,
}

/// A definition as some of its references need it.
struct Variant {
    name: String,
    target: String,
    /// The properties and items listed for the same value elsewhere; `None` if it is closed elsewhere.
    beside: Option<Listed>,
}

impl<'a> Closing<'a> {
    /// A schema whose value is closed, with what is listed for that value beside it.
    fn closed(
        &mut self,
        schema: &'a Value,
        beside: &Listed,
        depth: usize,
    ) -> Result<Value, Exceeded> {
        match schema {
            Value::Object(map) => Ok(Value::Object(self.closed_map(map, beside, depth)?)),
            Value::Bool(true) if beside.is_closed() => {
                let mut map = Map::new();
                self.seal(&mut map, beside)?;
                Ok(Value::Object(map))
            }
            other => Ok(other.clone()),
        }
    }

    fn closed_map(
        &mut self,
        map: &'a Map<String, Value>,
        beside: &Listed,
        depth: usize,
    ) -> Result<Map<String, Value>, Exceeded> {
        self.step(1, depth)?;
        let own = listed::own(map);
        let is_bare = beside.is_nothing() && own.is_nothing();
        let all = self.listed_of(map, depth)?;
        if !(all.has_alternatives || is_bare && has_one_part(map)) {
            let mut opened = self.open_map(map, depth)?;
            let mut whole = beside.clone();
            whole.add(&all);
            if whole.is_closed() {
                self.seal(&mut opened, &whole)?;
            }
            return Ok(opened);
        }
        let mut closed = Map::new();
        for (keyword, value) in map {
            let value = match (keyword.as_str(), value) {
                ("$ref", Value::String(reference)) => {
                    let beside = self.beside_part(map, beside, &own, (keyword, 0), depth)?;
                    self.reference(reference, Some(beside), depth)?
                }
                ("allOf" | "anyOf" | "oneOf", Value::Array(parts)) => {
                    let mut list = Vec::with_capacity(parts.len());
                    for (index, part) in parts.iter().enumerate() {
                        let beside =
                            self.beside_part(map, beside, &own, (keyword, index), depth)?;
                        list.push(self.closed(part, &beside, depth + 1)?);
                    }
                    Value::Array(list)
                }
                _ => self.inside(keyword, value, depth)?,
            };
            closed.insert(keyword.clone(), value);
        }
        Ok(closed)
    }

    /// The properties and items that a schema lists outside of one of its parts. Alternatives of that part do not count.
    fn beside_part(
        &mut self,
        map: &'a Map<String, Value>,
        beside: &Listed,
        own: &Listed,
        (keyword, index): (&str, usize),
        depth: usize,
    ) -> Result<Listed, Exceeded> {
        let mut all = beside.clone();
        all.add(own);
        for (other, value) in map {
            let is_same = other == keyword;
            if other == "$ref" && !is_same {
                all.add(&self.listed_at(value, depth)?);
            }
            if other == "allOf" || ALTERNATIVES.contains(&other.as_str()) && !is_same {
                for (place, part) in value.as_array().into_iter().flatten().enumerate() {
                    if !(is_same && place == index) {
                        all.add(&self.listed(part, depth + 1)?);
                    }
                }
            }
        }
        self.step(all.len(), depth)?;
        Ok(all)
    }

    /// A schema whose value is closed by what stands beside or around it.
    fn open(&mut self, schema: &'a Value, depth: usize) -> Result<Value, Exceeded> {
        match schema {
            Value::Object(map) => Ok(Value::Object(self.open_map(map, depth)?)),
            other => Ok(other.clone()),
        }
    }

    fn open_map(
        &mut self,
        map: &'a Map<String, Value>,
        depth: usize,
    ) -> Result<Map<String, Value>, Exceeded> {
        self.step(1, depth)?;
        let mut opened = Map::new();
        for (keyword, value) in map {
            let value = match (keyword.as_str(), value) {
                ("$ref", Value::String(reference)) => self.reference(reference, None, depth)?,
                ("allOf" | "anyOf" | "oneOf", Value::Array(parts)) => {
                    let parts = parts.iter().map(|part| self.open(part, depth + 1));
                    Value::Array(parts.collect::<Result<_, _>>()?)
                }
                _ => self.inside(keyword, value, depth)?,
            };
            opened.insert(keyword.clone(), value);
        }
        Ok(opened)
    }

    /// A keyword's value, in which schemas for parts of the value are closed.
    fn inside(&mut self, keyword: &str, value: &'a Value, depth: usize) -> Result<Value, Exceeded> {
        let nothing = Listed::default();
        match (keyword, value) {
            ("properties" | "patternProperties", Value::Object(map)) => {
                let parts = map.iter().map(|(name, part)| {
                    Ok((name.clone(), self.closed(part, &nothing, depth + 1)?))
                });
                Ok(Value::Object(parts.collect::<Result<_, Exceeded>>()?))
            }
            ("prefixItems", Value::Array(parts)) => {
                let parts = parts.iter().map(|part| self.closed(part, &nothing, depth + 1));
                Ok(Value::Array(parts.collect::<Result<_, _>>()?))
            }
            ("items" | "additionalProperties", part) => self.closed(part, &nothing, depth + 1),
            _ => Ok(value.clone()),
        }
    }

    /// A reference to a definition that is closed with what is `beside` it, or open.
    fn reference(
        &mut self,
        reference: &'a str,
        beside: Option<Listed>,
        depth: usize,
    ) -> Result<Value, Exceeded> {
        let target = reference.trim_start_matches(DEFINITIONS);
        let no_object = self.listed_target(target, depth)?.is_nothing();
        let beside = if no_object { beside.or_else(|| Some(Listed::default())) } else { beside };
        let key = (target, beside.as_ref().map(Listed::key));
        let place = match self.variants.binary_search_by(|(known, _)| known.cmp(&key)) {
            Ok(place) => return Ok(format!("{DEFINITIONS}{}", self.variants[place].1).into()),
            Err(place) => place,
        };
        let is_plain = beside.as_ref().is_some_and(Listed::is_nothing);
        let count = self.variants.len();
        let name = if is_plain { target.to_owned() } else { format!("{target}beside{count}") };
        let result = format!("{DEFINITIONS}{name}").into();
        self.variants.insert(place, (key, name.clone()));
        self.waiting.push(Variant { name, target: target.to_owned(), beside });
        Ok(result)
    }

    /// Allows the properties that are listed and no others.
    fn seal(&mut self, map: &mut Map<String, Value>, whole: &Listed) -> Result<(), Exceeded> {
        if map.contains_key("additionalProperties") || !may_be_object(map) {
            return Ok(());
        }
        self.step(whole.len(), 0)?;
        for (keyword, names) in
            [("properties", &whole.names), ("patternProperties", &whole.patterns)]
        {
            if names.is_empty() {
                continue;
            }
            let known = map.entry(keyword).or_insert_with(|| json!({}));
            if let Value::Object(known) = known {
                add_all(known, names);
            }
        }
        map.insert("additionalProperties".to_owned(), false.into());
        Ok(())
    }

    /// The properties and items that a schema lists, with those of its parts and alternatives.
    fn listed(&mut self, schema: &'a Value, depth: usize) -> Result<Listed, Exceeded> {
        match schema {
            Value::Object(map) => self.listed_of(map, depth),
            _ => Ok(Listed::default()),
        }
    }

    fn listed_of(&mut self, map: &'a Map<String, Value>, depth: usize) -> Result<Listed, Exceeded> {
        let mut all = listed::own(map);
        self.step(1 + all.len(), depth)?;
        for (keyword, value) in map {
            match keyword.as_str() {
                "$ref" => all.add(&self.listed_at(value, depth)?),
                "allOf" | "anyOf" | "oneOf" => {
                    let is_alternative = keyword != "allOf";
                    for part in value.as_array().into_iter().flatten() {
                        let part = self.listed(part, depth + 1)?;
                        all.has_alternatives |= is_alternative && (part.has_list || part.is_open);
                        all.add(&part);
                    }
                }
                _ => {}
            }
        }
        Ok(all)
    }

    /// The properties and items that the target of a reference lists.
    fn listed_at(&mut self, reference: &'a Value, depth: usize) -> Result<Listed, Exceeded> {
        let target = reference.as_str().unwrap_or_default().trim_start_matches(DEFINITIONS);
        self.listed_target(target, depth)
    }

    fn listed_target(&mut self, target: &'a str, depth: usize) -> Result<Listed, Exceeded> {
        let place =
            |listed: &[(&str, Listed)]| listed.binary_search_by_key(&target, |known| known.0);
        let first = match place(&self.listed) {
            Ok(known) => return Ok(self.listed[known].1.clone()),
            Err(first) => first,
        };
        let Some(schema) = self.definitions.get(target) else { return Ok(Listed::default()) };
        self.listed.insert(first, (target, Listed::default()));
        let found = self.listed(schema, depth + 1)?;
        if let Ok(known) = place(&self.listed) {
            self.listed[known].1 = found.clone();
        }
        Ok(found)
    }

    fn step(&mut self, work: usize, depth: usize) -> Result<(), Exceeded> {
        self.work += work;
        at_most("schemas and properties beside each other", MAX_WORK, self.work)?;
        at_most(NESTED, self.limits.depth, depth)
    }
}

/// Whether exactly one other schema applies to the same value.
fn has_one_part(map: &Map<String, Value>) -> bool {
    let parts = |keyword: &str| map.get(keyword).and_then(Value::as_array).map_or(0, Vec::len);
    let alternatives = ALTERNATIVES.into_iter().any(|keyword| map.contains_key(keyword));
    !alternatives && parts("allOf") + usize::from(map.contains_key("$ref")) == 1
}

fn may_be_object(map: &Map<String, Value>) -> bool {
    match map.get("type") {
        Some(Value::String(name)) => name == "object",
        Some(Value::Array(names)) => names.iter().any(|name| name == "object"),
        _ => true,
    }
}

#[cfg(test)]
mod tests;
