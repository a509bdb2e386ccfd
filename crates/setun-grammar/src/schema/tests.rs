use serde_json::json;

use super::*;

fn prepare(schema: &Value) -> Result<Value, GrammarError> {
    super::prepare(schema, &GrammarLimits::default())
}

fn prepared(schema: &Value) -> Value {
    let mut prepared = prepare(schema).expect("it is supported");
    let map = prepared.as_object_mut().expect("an object");
    map.remove("x-guidance");
    if map["$defs"] == json!({}) {
        map.remove("$defs");
    }
    prepared
}

fn refusal(schema: &Value) -> String {
    prepare(schema).expect_err("it is refused").to_string()
}

#[test]
fn what_does_not_decide_is_left_out() {
    let schema = json!({
        "title": "a", "$comment": "b", "x-own": 1, "$id": "http://a", "uniqueItems": false,
        "then": false, "minContains": 3, "unevaluatedItems": true, "nullable": true,
        "propertyNames": { "type": "string", "description": "c" },
        "properties": { "title": { "default": 1, "type": "string", "minLength": 2.0 } },
    });
    let expected = json!({
        "properties": { "title": { "type": "string", "minLength": 2 } },
        "additionalProperties": false,
    });
    assert_eq!(prepared(&schema), expected);
}

#[test]
fn what_is_not_applied_is_refused_by_name() {
    for (schema, message) in [
        (
            json!({"items": [true, {"not": {}}], "$schema": "http://json-schema.org/draft-07/schema#"}),
            "keyword `not` at #/items/1 of the schema is not supported",
        ),
        (
            json!({"properties": {"a/b": {"format": 3}}}),
            "keyword `format` at #/properties/a~1b of the schema: expected a name, found 3",
        ),
        (
            json!({"pattern": "a(?=b)"}),
            "keyword `pattern: a(?=b)` at # of the schema is not supported: look-around",
        ),
        (
            json!({"patternProperties": {"\\b": true}}),
            "keyword `patternProperties: \\b` at # of the schema is not supported: `\\b`",
        ),
        (
            json!({"$ref": "other.json"}),
            "keyword `$ref: other.json` at # of the schema is not supported: it leaves the schema",
        ),
        (
            json!({"$ref": "#name"}),
            "keyword `$ref: #name` at # of the schema is not supported: anchors are not followed",
        ),
        (
            json!({"minProperties": 2, "required": []}),
            "keyword `minProperties: 2` at # of the schema is not supported: more than one name would be free, and could come twice",
        ),
        (
            json!({"propertyNames": {"type": "string", "minLength": 1}}),
            "keyword `propertyNames` at # of the schema is not supported",
        ),
        (json!({"if": true, "then": true}), "keyword `if` at # of the schema is not supported"),
        (
            json!({"minLength": -1}),
            "keyword `minLength` at # of the schema: expected a whole number from 0, found -1",
        ),
        (
            json!({"type": "any"}),
            "keyword `type` at # of the schema: expected a type or a list of types, found \"any\"",
        ),
        (
            json!({"const": "a\u{1}"}),
            "keyword `const` at # of the schema: expected texts without control characters other than \\n, \\r, \\t, \\b, \\f, found \"a\\u0001\"",
        ),
        (
            json!({"$schema": "http://own"}),
            "keyword `$schema` at # of the schema: expected draft 4, 6, 7, 2019-09 or 2020-12, found \"http://own\"",
        ),
        (
            json!({"x-guidance": {"whitespace_flexible": true, "lenient": true}}),
            "keyword `x-guidance: lenient` at # of the schema is not supported",
        ),
        (
            json!({"x-guidance": {"whitespace_flexible": 1}}),
            "keyword `x-guidance` at # of the schema: expected an object with the booleans `whitespace_flexible` and `open_objects`, found {\"whitespace_flexible\":1}",
        ),
        (json!(false), "the schema cannot be followed: `false` allows no value"),
        (
            json!({"properties": {"a": 3}}),
            "the schema cannot be followed: #/properties/a is 3, expected an object or a boolean",
        ),
    ] {
        assert_eq!(refusal(&schema), message);
    }
}

#[test]
fn references_become_definitions() {
    let schema = json!({
        "properties": { "a/b": { "$ref": "#/properties/c%25d" }, "c%d": { "$ref": "#/properties/a~1b" }, "e": { "$ref": "#" } },
    });
    let expected = json!({
        "properties": { "a/b": { "$ref": "#/$defs/part0" }, "c%d": { "$ref": "#/$defs/part1" }, "e": { "$ref": "#/$defs/part2" } },
        "additionalProperties": false,
        "$defs": {
            "part0": { "$ref": "#/$defs/part1" },
            "part1": { "$ref": "#/$defs/part0" },
            "part2": {
                "properties": { "a/b": { "$ref": "#/$defs/part0" }, "c%d": { "$ref": "#/$defs/part1" }, "e": { "$ref": "#/$defs/part2" } },
                "additionalProperties": false,
            },
        },
    });
    assert_eq!(prepared(&schema), expected);
}

#[test]
fn a_reference_inside_of_another_document_is_refused() {
    let inner = json!({ "$id": "http://inner", "items": { "$ref": "#/$defs/a" } });
    let schema =
        json!({ "$id": "http://outer", "properties": { "p": inner }, "$defs": { "a": true } });
    assert!(refusal(&schema).contains("inside of a schema with an `$id` of its own"));
    let referenced = json!({ "$ref": "#/$defs/p/items", "$defs": { "p": inner, "a": true } });
    assert!(refusal(&referenced).contains("inside of a schema with an `$id` of its own"));
}

#[test]
fn older_editions_are_written_as_the_newest() {
    let draft = |edition: &str, schema: &Value| {
        let mut schema = schema.clone();
        schema["$schema"] = format!("http://json-schema.org/{edition}/schema#").into();
        prepared(&schema)
    };
    let list = json!({ "items": [true], "additionalItems": false });
    let modern = json!({ "prefixItems": [true], "items": false });
    assert_eq!(draft("draft-07", &list), modern);
    assert_eq!(draft("draft/2019-09", &list), modern);
    let single = json!({ "items": true, "additionalItems": false });
    assert_eq!(draft("draft-06", &single), json!({ "items": true }));
    let beside = json!({ "$ref": "#", "maxItems": 1 });
    assert_eq!(draft("draft-07", &beside)["maxItems"], json!(null));
    assert_eq!(prepared(&beside)["maxItems"], 1);
    let bound = json!({ "minimum": 1, "exclusiveMinimum": true });
    assert_eq!(draft("draft-04", &bound), bound);
    assert!(refusal(&bound).contains("expected a number"));
}

#[test]
fn multiples_stay_in_32_bits() {
    let all = |values: &[f64]| {
        let parts: Vec<Value> = values.iter().map(|value| json!({ "multipleOf": value })).collect();
        prepare(&json!({ "allOf": parts })).is_ok()
    };
    assert!(all(&[0.01, 5.0, 2000.0]));
    assert!(!all(&[65_537.0, 65_539.0]) && all(&[65_537.0, 65_537.0]));
    assert!(!all(&[0.0]) && !all(&[-2.0]) && !all(&[1.0 / 3.0]) && !all(&[1e-12]));
}

#[test]
fn the_lists_of_keywords_are_complete() {
    let anything = Map::new();
    for keyword in KEYWORDS {
        assert!(matches!(role(keyword, &Value::Null, &anything), Role::Applied), "{keyword}");
    }
    for keyword in IGNORED_KEYWORDS {
        assert!(matches!(role(keyword, &Value::Null, &anything), Role::Ignored), "{keyword}");
    }
}

#[test]
fn numbers_without_a_bound_get_one() {
    let whole = json!({ "type": "integer", "exclusiveMinimum": 3 });
    assert_eq!(
        prepared(&whole),
        json!({ "type": "integer", "exclusiveMinimum": 3, "maximum": 9e18 })
    );
    let multiple = prepared(&json!({ "multipleOf": 0.5 }));
    assert_eq!(multiple["minimum"], -9_007_199_254_740_992.0);
    assert_eq!(prepared(&json!({ "type": "number" })), json!({ "type": "number" }));
}

#[test]
fn formats_that_are_not_applied_are_annotations_and_integers_have_ranges() {
    for format in ["regex", "uri-reference", "path", "float", "int64", "byte"] {
        assert_eq!(prepared(&json!({"format": format})), json!({}), "{format}");
        let text = json!({"type": "string", "format": format});
        assert_eq!(prepared(&text), json!({"type": "string"}), "{format}");
    }
    let range = |schema: Value| {
        let prepared = prepared(&schema);
        [prepared["minimum"].as_f64(), prepared["maximum"].as_f64()]
    };
    let integer = |format: &str| json!({"type": "integer", "format": format});
    assert_eq!(range(integer("uint8")), [Some(0.0), Some(255.0)]);
    assert_eq!(range(integer("int32")), [Some(-2_147_483_648.0), Some(2_147_483_647.0)]);
    assert_eq!(range(integer("uint64")), [Some(0.0), Some(9e18)]);
    assert_eq!(range(integer("int64")), [Some(-9e18), Some(9e18)]);
    let optional = json!({"type": ["integer", "null"], "format": "uint", "minimum": 3});
    assert_eq!(range(optional), [Some(3.0), None]);
    assert_eq!(range(json!({"type": "number", "format": "uint8"})), [None, None]);
}

#[test]
fn a_format_joins_the_other_conditions() {
    let schema = json!({ "format": "hostname", "pattern": "a", "allOf": [{ "minLength": 3 }] });
    let prepared = prepared(&schema);
    assert_eq!((&prepared["format"], &prepared["pattern"]), (&Value::Null, &json!("a")));
    assert_eq!(prepared["allOf"].as_array().map(Vec::len), Some(2));
}

/// Unions whose parts a reader tells apart behind references.
#[test]
fn one_of_is_any_of_where_its_parts_differ_behind_references() {
    let object = |more: Value| {
        let mut map = json!({"type": "object", "additionalProperties": false});
        map.as_object_mut().expect("an object").extend(more.as_object().expect("one").clone());
        map
    };
    let tagged = |kind: Value| object(json!({"properties": {"kind": kind}, "required": ["kind"]}));
    let named = |name: &str| object(json!({"properties": {name: true}, "required": [name]}));
    let is_any_of = |first: Value, second: Value| {
        let reference = |name: &str| json!({"$ref": format!("#/$defs/{name}")});
        let schema = json!({"oneOf": [reference("a"), reference("b")],
            "$defs": {"a": first, "b": second, "tag": {"const": "x"}, "loop": reference("loop")}});
        prepared(&schema).get("anyOf").is_some()
    };
    for (first, second) in [
        (tagged(json!({"const": "x"})), tagged(json!({"enum": ["y", 1]}))),
        (tagged(json!({"$ref": "#/$defs/tag"})), tagged(json!({"const": "y"}))),
        (tagged(json!({"const": 1})), tagged(json!({"type": "string"}))),
        (named("left"), named("right")),
        (json!({"type": "string"}), json!({"type": ["integer", "null"]})),
        (json!({"enum": ["a", 1]}), json!({"enum": ["b", 2]})),
        (json!({"allOf": [tagged(json!({"const": "x"}))]}), tagged(json!({"const": "y"}))),
        (json!({"anyOf": [{"const": 1}, {"const": 2}]}), json!({"const": 3})),
    ] {
        assert!(is_any_of(first.clone(), second.clone()), "{first} {second}");
    }
    let optional = json!({"type": "object", "properties": {"kind": {"const": "x"}}});
    for (first, second) in [
        (tagged(json!({"const": "x"})), tagged(json!({"enum": ["y", "x"]}))),
        (tagged(json!({"type": "string"})), tagged(json!({"const": "y"}))),
        (optional.clone(), json!({"type": "object", "properties": {"kind": {"const": "y"}}})),
        (
            json!({"required": ["a"], "properties": {"a": {"const": 1}}}),
            json!({"required": ["a"], "properties": {"a": {"const": 2}}}),
        ),
        (json!({"const": 1}), json!({"const": 1.0})),
        (json!({"const": [1]}), json!({"const": [1.0]})),
        (json!({"type": "number"}), json!({"type": "integer"})),
        (json!({"$ref": "#/$defs/loop"}), json!({"type": "string"})),
    ] {
        assert!(!is_any_of(first.clone(), second.clone()), "{first} {second}");
    }
}
