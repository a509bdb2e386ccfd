//! Messages of refused specifications. The tests of the npm package expect the same in WebAssembly,
//! and read the same file.

use std::path::PathBuf;

use crate::support::over_bytes;
use serde_json::{Map, Value, json};
use setun_grammar::GrammarSpec;

/// Just beyond the bounds: each form with its kind and text, as the npm package writes them.
fn forms() -> Vec<(&'static str, String)> {
    let nested = |levels: usize, wrap: fn(Value) -> Value| {
        (0..levels).fold(json!({}), |inner, _| wrap(inner)).to_string()
    };
    let definitions: Map<String, Value> = (0..129)
        .map(|link| {
            (format!("d{link}"), json!({"items": {"$ref": format!("#/$defs/d{}", link + 1)}}))
        })
        .chain([("d129".to_owned(), json!({}))])
        .collect();
    let named = |names: usize, name: fn(usize) -> String| -> Map<String, Value> {
        (0..names).map(|index| (name(index), json!({"type": "null"}))).collect()
    };
    let properties = named(301, |index| format!("p{index}"));
    let patterns = named(46, |index| format!("^p{index}$"));
    let rules = |define: &str| -> String {
        let rules = (0..128).map(|rule| format!("r{rule}{define} \"a\" r{}\n", rule + 1));
        rules.collect::<Vec<_>>().concat()
    };
    let groups = format!("{}\"a\"{}", "(".repeat(29), ")".repeat(29));
    vec![
        ("json_schema", json!({"$ref": "#/$defs/d0", "$defs": definitions}).to_string()),
        ("json_schema", nested(129, |inner| json!({"allOf": [inner]}))),
        ("json_schema", format!("{}{}", "[".repeat(128), "]".repeat(128))),
        ("json_schema", json!({"properties": properties, "maxProperties": 2}).to_string()),
        ("json_schema", json!({"patternProperties": patterns}).to_string()),
        ("json_schema", json!({"not": {}}).to_string()),
        ("regex", "a?".repeat(720)),
        ("regex", "(".to_owned()),
        ("choice", "[]".to_owned()),
        ("lark", format!("start: r0\n{}r128: \"b\"\n", rules(":"))),
        ("lark", format!("start: {groups}\n")),
        ("gbnf", format!("root ::= r0\n{}r128 ::= \"b\" r0?\n", rules(" ::="))),
        ("gbnf", format!("root ::= {groups}\n")),
    ]
}

fn message(kind: &str, text: &str) -> String {
    let spec = match kind {
        "json_schema" => GrammarSpec::json_schema(text),
        "choice" => Ok(GrammarSpec::Choice(serde_json::from_str(text).expect("texts"))),
        "regex" => Ok(GrammarSpec::Regex(text.to_owned())),
        "lark" => Ok(GrammarSpec::Lark(text.to_owned())),
        _ => Ok(GrammarSpec::Gbnf(text.to_owned())),
    };
    spec.and_then(|spec| over_bytes(&spec)).map(drop).expect_err(text).to_string()
}

fn refusals() -> Value {
    let refused = |(kind, text): (&str, String)| {
        let message = message(kind, &text);
        json!({"kind": kind, "text": text, "message": message})
    };
    forms().into_iter().map(refused).collect()
}

fn file() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/grammar/refusals.json")
}

#[test]
fn refusals_are_the_same_everywhere() {
    let known = std::fs::read(file()).expect("the fixture");
    let known: Value = serde_json::from_slice(&known).expect("JSON");
    assert_eq!(refusals(), known);
}

#[test]
#[ignore = "writes the fixture anew"]
fn rewrite_fixture() {
    let json = serde_json::to_string_pretty(&refusals()).expect("JSON") + "\n";
    std::fs::write(file(), json).expect("written");
}
