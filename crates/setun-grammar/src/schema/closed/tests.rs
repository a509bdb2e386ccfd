use serde_json::{Value, json};

use crate::GrammarLimits;

/// The prepared schema, with definitions where there are any.
fn prepared(schema: &Value) -> Value {
    let prepared = super::super::prepare(schema, &GrammarLimits::default());
    let mut prepared = prepared.expect("it is supported");
    let map = prepared.as_object_mut().expect("an object");
    map.remove("x-guidance");
    if map["$defs"] == json!({}) {
        map.remove("$defs");
    }
    prepared
}

#[test]
fn an_object_with_a_list_is_closed_and_others_are_not() {
    for (schema, is_closed) in [
        (json!({"properties": {"a": true}}), true),
        (json!({"properties": {}}), true),
        (json!({"patternProperties": {"^a": true}}), true),
        (json!({"type": "object"}), false),
        (json!({"required": ["a"]}), false),
        (json!({"properties": {"a": true}, "additionalProperties": true}), false),
        (json!({"properties": {"a": true}, "additionalProperties": {"type": "null"}}), false),
        (json!({"properties": {"a": true}, "unevaluatedProperties": true}), false),
        (json!({"properties": {}, "minProperties": 1}), false),
        (json!({"properties": {"a": true}, "x-guidance": {"open_objects": true}}), false),
    ] {
        assert_eq!(prepared(&schema)["additionalProperties"] == false, is_closed, "{schema}");
    }
}

#[test]
fn parts_of_one_value_are_closed_together() {
    let schema = json!({
        "allOf": [{"properties": {"a": {"type": "null"}}}, {"properties": {"b": true}}],
        "required": ["c"],
    });
    let expected = json!({
        "allOf": [{"properties": {"a": {"type": "null"}}}, {"properties": {"b": true}}],
        "required": ["c"],
        "properties": {"c": true, "a": true, "b": true},
        "additionalProperties": false,
    });
    assert_eq!(prepared(&schema), expected);
}

#[test]
fn alternatives_are_closed_one_by_one() {
    let schema = json!({
        "properties": {"a": true},
        "anyOf": [{"properties": {"b": true}}, {"properties": {"c": true}}, {"type": "null"}, true],
    });
    let branch = |names: &Value| json!({"properties": names, "additionalProperties": false});
    let expected = json!({
        "properties": {"a": true},
        "anyOf": [
            branch(&json!({"b": true, "a": true})), branch(&json!({"c": true, "a": true})),
            {"type": "null"}, branch(&json!({"a": true})),
        ],
    });
    assert_eq!(prepared(&schema), expected);
}

#[test]
fn a_definition_is_closed_where_it_stands_alone() {
    let schema = json!({
        "properties": {
            "alone": {"$ref": "#/$defs/base"},
            "wrapped": {"allOf": [{"$ref": "#/$defs/base"}]},
            "extended": {"allOf": [{"$ref": "#/$defs/base"}, {"properties": {"b": true}}]},
        },
        "$defs": {"base": {"properties": {"a": true}}},
    });
    let found = prepared(&schema);
    let properties = &found["properties"];
    assert_eq!(properties["alone"], json!({"$ref": "#/$defs/part0"}));
    assert_eq!(properties["wrapped"], json!({"allOf": [{"$ref": "#/$defs/part0"}]}));
    assert_eq!(properties["extended"]["properties"], json!({"a": true, "b": true}));
    assert_eq!(found["$defs"]["part0"]["additionalProperties"], false);
    let open = properties["extended"]["allOf"][0]["$ref"].as_str().expect("a reference");
    assert_eq!(
        found["$defs"][open.trim_start_matches("#/$defs/")],
        json!({"properties": {"a": true}})
    );
}
