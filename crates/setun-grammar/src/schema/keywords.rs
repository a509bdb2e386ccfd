//! Which keywords are applied, which are ignored, which are refused.

use serde_json::{Map, Value};

use crate::GrammarError;

/// The keywords that are applied, all of them exactly.
pub const KEYWORDS: [&str; 26] = [
    "$ref",
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "items",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "oneOf",
    "pattern",
    "patternProperties",
    "prefixItems",
    "properties",
    "required",
];

/// The formats that are applied, to strings. Others say nothing, as JSON Schema has it, but for
/// the ranges that those of integers have.
pub const FORMATS: [&str; 10] =
    ["date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uri", "uuid"];

/// The keywords of JSON Schema that never decide whether a value is valid. Those that JSON
/// Schema does not know are ignored, too, as it demands.
pub const IGNORED_KEYWORDS: [&str; 22] = [
    "$anchor",
    "$comment",
    "$defs",
    "$dynamicAnchor",
    "$id",
    "$recursiveAnchor",
    "$schema",
    "$vocabulary",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "default",
    "definitions",
    "deprecated",
    "description",
    "discriminator",
    "examples",
    "id",
    "nullable",
    "readOnly",
    "title",
    "writeOnly",
];

/// The keywords that decide and are not applied.
const REFUSED: [&str; 18] = [
    "$dynamicRef",
    "$recursiveRef",
    "contains",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "disallow",
    "divisibleBy",
    "else",
    "extends",
    "if",
    "maxContains",
    "minContains",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];

/// Treatment of a keyword.
pub(super) enum Role {
    Applied,
    Ignored,
    /// Why, if more than that it is not supported.
    Refused(&'static str),
}

/// The role of a keyword in the schema `map`.
pub(super) fn role(keyword: &str, value: &Value, map: &Map<String, Value>) -> Role {
    let has = |other: &str| map.contains_key(other);
    let without_effect = match keyword {
        // Others than those that are applied are annotations.
        "format" => value.as_str().is_some_and(|name| !FORMATS.contains(&name)),
        "uniqueItems" => value == &Value::Bool(false),
        "then" | "else" => !has("if"),
        "if" => !has("then") && !has("else"),
        "minContains" | "maxContains" => !has("contains"),
        "unevaluatedItems" | "unevaluatedProperties" => is_anything(value),
        "propertyNames" => is_anything(value) || is_any_string(value),
        _ => false,
    };
    if without_effect {
        Role::Ignored
    } else if keyword == "type" || KEYWORDS.contains(&keyword) {
        Role::Applied
    } else if keyword == "uniqueItems" {
        Role::Refused("; a list of `enum` values, or `maxItems` 1, may do")
    } else if REFUSED.contains(&keyword) {
        Role::Refused("")
    } else {
        Role::Ignored
    }
}

/// Whether a schema says by `unevaluatedProperties` that an object may have any others.
pub(super) fn are_more_allowed(map: &Map<String, Value>) -> bool {
    map.get("unevaluatedProperties").is_some_and(is_anything)
}

fn is_anything(schema: &Value) -> bool {
    schema == &Value::Bool(true) || schema.as_object().is_some_and(Map::is_empty)
}

/// Whether a schema allows every string. Zod has one for the names of a record.
fn is_any_string(schema: &Value) -> bool {
    let is_open = |(keyword, value): (&String, &Value)| match &**keyword {
        "type" => value == "string",
        other => IGNORED_KEYWORDS.contains(&other),
    };
    schema.as_object().is_some_and(|map| map.iter().all(is_open))
}

/// An edition of JSON Schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Draft {
    Draft4,
    Draft6,
    Draft7,
    Draft201909,
    Draft202012,
}

impl Draft {
    /// The edition that a schema names, or the newest.
    pub(super) fn of(schema: &Value) -> Result<Self, GrammarError> {
        let Some(named) = schema.get("$schema") else {
            return Ok(Self::Draft202012);
        };
        let uri = named.as_str().unwrap_or_default();
        let uri =
            uri.trim_end_matches('#').trim_start_matches("https:").trim_start_matches("http:");
        match uri {
            "//json-schema.org/draft-04/schema" => Ok(Self::Draft4),
            "//json-schema.org/draft-06/schema" => Ok(Self::Draft6),
            "//json-schema.org/draft-07/schema" => Ok(Self::Draft7),
            "//json-schema.org/draft/2019-09/schema" => Ok(Self::Draft201909),
            "//json-schema.org/draft/2020-12/schema" => Ok(Self::Draft202012),
            _ => Err(GrammarError::KeywordValue {
                keyword: "$schema".to_owned(),
                place: "#".to_owned(),
                expected: "draft 4, 6, 7, 2019-09 or 2020-12",
                found: super::shortened(named),
            }),
        }
    }

    pub(super) fn id_keyword(self) -> &'static str {
        if self == Self::Draft4 { "id" } else { "$id" }
    }

    /// Whether keywords beside `$ref` mean nothing.
    pub(super) fn reference_stands_alone(self) -> bool {
        self <= Self::Draft7
    }

    /// Whether `items` may be a list, later called `prefixItems`.
    pub(super) fn items_may_be_list(self) -> bool {
        self <= Self::Draft201909
    }

    /// Whether an exclusive bound is a boolean beside the bound.
    pub(super) fn exclusive_is_boolean(self) -> bool {
        self == Self::Draft4
    }

    /// The name of a keyword of the schema `map` in the newest edition; `None` if it means
    /// nothing in this one.
    pub(super) fn modern_name<'k>(
        self,
        keyword: &'k str,
        map: &Map<String, Value>,
    ) -> Option<&'k str> {
        let list = self.items_may_be_list() && map.get("items").is_some_and(Value::is_array);
        match keyword {
            "items" if list => Some("prefixItems"),
            "additionalItems" => list.then_some("items"),
            "prefixItems" => (!self.items_may_be_list()).then_some(keyword),
            _ => Some(keyword),
        }
    }
}
