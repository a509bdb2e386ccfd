//! JSON schemas in the form that the parser applies exactly.
//!
//! The parser ignores what it does not know. So a schema is walked first: what decides about
//! validity and is not applied is refused by name, what does not decide is left out, and what
//! the drafts of JSON Schema write in different ways is written in one.

mod bounds;
mod closed;
mod disjoint;
mod formats;
mod free_parts;
mod in_place;
mod keywords;
mod kind;
mod options;
mod reference;
mod values;

use serde_json::{Map, Value};

use crate::limits::at_most;
use crate::{GrammarError, GrammarLimits};
pub(crate) use bounds::check;
use free_parts::FreeParts;
use keywords::{Draft, Role, role};
pub use keywords::{FORMATS, IGNORED_KEYWORDS, KEYWORDS};
use options::Options;
use reference::References;
use values::Multiples;

/// What is bounded by [`GrammarLimits::depth`], in errors.
const NESTED: &str = "schemas and references in each other";

/// The letters after a backslash in a string. Without `u` a name has one spelling, so that a
/// further property cannot be a listed one spelt in another way.
const ESCAPES: &str = "nrbtf\\\"";

/// Characters of a value or a name in a message.
const SHOWN: usize = 60;

/// The schema for the parser, with its options.
pub(crate) fn prepare(schema: &Value, limits: &GrammarLimits) -> Result<Value, GrammarError> {
    Ok(prepared(schema, limits, None)?.0)
}

/// The same without the keywords that cannot be applied, and why each is not.
pub(crate) fn prepare_freely(
    schema: &Value,
    limits: &GrammarLimits,
) -> Result<(Value, Vec<GrammarError>), GrammarError> {
    prepared(schema, limits, Some(FreeParts::default()))
}

/// Makes the parser take `oneOf` as `anyOf` in a prepared schema.
pub(crate) fn take_one_of_as_any_of(prepared: &mut Value) {
    prepared[options::KEYWORD]["coerce_one_of"] = true.into();
}

fn prepared(
    schema: &Value,
    limits: &GrammarLimits,
    free: Option<FreeParts>,
) -> Result<(Value, Vec<GrammarError>), GrammarError> {
    let options = Options::of(schema)?;
    let (references, multiples) = (References::new(schema), Multiples::new());
    let mut walk = Walk { draft: Draft::Draft202012, references, multiples, limits, free };
    match Draft::of(schema) {
        Ok(draft) => walk.draft = draft,
        Err(error) => walk.leave(error)?,
    }
    let mut prepared = match walk.schema(schema, &SchemaPath::root())? {
        Value::Object(map) => map,
        Value::Bool(true) => Map::new(),
        _ => return Err(GrammarError::Schema { reason: "`false` allows no value".to_owned() }),
    };
    let mut definitions = Map::new();
    while let Some((name, place)) = walk.references.next() {
        let target = walk.references.target(&place)?;
        definitions.insert(name, walk.schema(target, &place)?);
    }
    // The bytes of the module of browsers are counted. There the parser refuses such a `oneOf`.
    if cfg!(not(target_arch = "wasm32")) {
        disjoint::rewrite(&mut prepared, &mut definitions);
    }
    if !options.open_objects {
        (prepared, definitions) = closed::close(&prepared, &definitions, limits)?;
    }
    prepared.insert("$defs".to_owned(), Value::Object(definitions));
    let mut prepared = Value::Object(prepared);
    check(&prepared, limits)?;
    prepared[options::KEYWORD] = options.for_parser(ESCAPES);
    Ok((prepared, walk.free.map(FreeParts::into_reasons).unwrap_or_default()))
}

/// Where a schema is in its document.
#[derive(Clone, Debug)]
struct SchemaPath {
    /// JSON pointer as a fragment.
    pointer: String,
    /// Schemas around it.
    depth: usize,
    /// Whether the schema or one around it, but for the outermost, is a document of its own.
    in_other_document: bool,
}

impl SchemaPath {
    fn root() -> Self {
        Self { pointer: "#".to_owned(), depth: 0, in_other_document: false }
    }

    fn below(&self, segment: &str) -> Self {
        let segment = cut(segment).replace('~', "~0").replace('/', "~1");
        Self {
            pointer: format!("{}/{segment}", self.pointer),
            depth: self.depth,
            in_other_document: self.in_other_document,
        }
    }
}

struct Walk<'a> {
    draft: Draft,
    references: References<'a>,
    multiples: Multiples,
    limits: &'a GrammarLimits,
    /// The parts that are left free, where a keyword that cannot be applied is no error.
    free: Option<FreeParts>,
}

impl Walk<'_> {
    fn schema(&mut self, schema: &Value, place: &SchemaPath) -> Result<Value, GrammarError> {
        at_most(NESTED, self.limits.depth, place.depth)?;
        match schema {
            Value::Bool(allowed) => Ok(Value::Bool(*allowed)),
            Value::Object(map) => {
                let other = place.depth > 0 && map.contains_key(self.draft.id_keyword());
                let place = SchemaPath {
                    in_other_document: place.in_other_document || other,
                    depth: place.depth + 1,
                    ..place.clone()
                };
                self.keywords(map, &place).map(Value::Object)
            }
            other => {
                let found = shortened(other);
                let reason =
                    format!("{} is {found}, expected an object or a boolean", place.pointer);
                self.leave(GrammarError::Schema { reason })?;
                Ok(Value::Bool(true))
            }
        }
    }

    fn keywords(
        &mut self,
        map: &Map<String, Value>,
        place: &SchemaPath,
    ) -> Result<Map<String, Value>, GrammarError> {
        let (mut prepared, mut left) = (Map::new(), vec![]);
        let only_reference = self.draft.reference_stands_alone() && map.contains_key("$ref");
        for (keyword, value) in map {
            if only_reference && keyword != "$ref" {
                continue;
            }
            match role(keyword, value, map) {
                Role::Ignored => {}
                Role::Refused(hint) => self.leave(refused(keyword, place, hint))?,
                Role::Applied => {
                    let name = self.draft.modern_name(keyword, map);
                    let Some(name) = name else { continue };
                    match self.value(keyword, value, place) {
                        Ok(value) => {
                            prepared.insert(name.to_owned(), value);
                        }
                        Err(error) => {
                            self.leave(error)?;
                            left.push(name);
                        }
                    }
                }
            }
        }
        if keywords::are_more_allowed(map) {
            prepared.entry("additionalProperties").or_insert(true.into());
        }
        if let Err(error) = values::count_of_properties(&prepared, place) {
            self.leave(error)?;
            prepared.shift_remove("minProperties");
        }
        free_parts::open(&mut prepared, &left);
        formats::bound_integers(map, &mut prepared);
        values::bound_numbers(&mut prepared);
        formats::write_out(&mut prepared);
        Ok(prepared)
    }

    /// Leaves out what cannot be applied, where that is no error.
    fn leave(&mut self, error: GrammarError) -> Result<(), GrammarError> {
        match &mut self.free {
            Some(free) => free.add(error),
            None => Err(error),
        }
    }

    /// A keyword's value, checked, with the schemas in it prepared.
    fn value(
        &mut self,
        keyword: &str,
        value: &Value,
        place: &SchemaPath,
    ) -> Result<Value, GrammarError> {
        let below = place.below(keyword);
        let fault = |expected| fault(keyword, place, expected, value);
        match keyword {
            "$ref" => self.reference(value, place),
            "allOf" | "anyOf" | "oneOf" | "prefixItems" => {
                let list = value.as_array().filter(|list| !list.is_empty());
                self.list(list.ok_or_else(|| fault("a list of schemas"))?, &below)
            }
            "items" if value.is_array() => {
                let list = value.as_array().filter(|_| self.draft.items_may_be_list());
                self.list(list.ok_or_else(|| fault("a schema (`prefixItems` has a list)"))?, &below)
            }
            "items" | "additionalItems" | "additionalProperties" => self.schema(value, &below),
            "properties" => {
                self.named(value.as_object().ok_or_else(|| fault("an object"))?, &below)
            }
            "patternProperties" => {
                self.patterns(value.as_object().ok_or_else(|| fault("an object"))?, place)
            }
            "multipleOf" => self.multiples.checked(value).map_err(fault),
            _ => values::checked(keyword, value, self.draft, place),
        }
    }

    fn list(&mut self, list: &[Value], below: &SchemaPath) -> Result<Value, GrammarError> {
        let schemas = list.iter().enumerate();
        schemas
            .map(|(index, schema)| self.schema(schema, &below.below(&index.to_string())))
            .collect()
    }

    fn named(
        &mut self,
        map: &Map<String, Value>,
        below: &SchemaPath,
    ) -> Result<Value, GrammarError> {
        let schemas = map.iter();
        let prepared: Result<Map<String, Value>, GrammarError> = schemas
            .map(|(name, schema)| Ok((name.clone(), self.schema(schema, &below.below(name))?)))
            .collect();
        prepared.map(Value::Object)
    }

    fn patterns(
        &mut self,
        map: &Map<String, Value>,
        place: &SchemaPath,
    ) -> Result<Value, GrammarError> {
        let below = place.below("patternProperties");
        let mut prepared = Map::new();
        for (pattern, schema) in map {
            let rust = values::pattern(pattern)
                .map_err(|hint| refused(&format!("patternProperties: {pattern}"), place, &hint))?;
            let schema = self.schema(schema, &below.below(pattern))?;
            if prepared.insert(rust, schema).is_some() {
                let hint = ": two expressions are the same";
                return Err(refused(&format!("patternProperties: {pattern}"), place, hint));
            }
        }
        Ok(Value::Object(prepared))
    }

    fn reference(&mut self, value: &Value, place: &SchemaPath) -> Result<Value, GrammarError> {
        let text = value.as_str().ok_or_else(|| fault("$ref", place, "a string", value))?;
        let refused = |hint: &str| refused(&format!("$ref: {text}"), place, hint);
        if place.in_other_document {
            return Err(refused(": it is inside of a schema with an `$id` of its own"));
        }
        self.references.name(text).map(|name| format!("#/$defs/{name}").into()).map_err(refused)
    }
}

fn refused(keyword: &str, place: &SchemaPath, hint: &str) -> GrammarError {
    let place = place.pointer.clone();
    GrammarError::Keyword { keyword: keyword.to_owned(), place, hint: hint.to_owned() }
}

fn fault(keyword: &str, place: &SchemaPath, expected: &'static str, found: &Value) -> GrammarError {
    GrammarError::KeywordValue {
        keyword: keyword.to_owned(),
        place: place.pointer.clone(),
        expected,
        found: shortened(found),
    }
}

/// A value for a message.
fn shortened(value: &Value) -> String {
    cut(&value.to_string())
}

/// The beginning of a text, for a message.
fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests;
