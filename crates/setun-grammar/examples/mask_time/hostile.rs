//! Forms that are meant to be slow.

use serde_json::{Value, json};
use setun_grammar::GrammarSpec;

pub(crate) fn forms() -> Vec<(&'static str, GrammarSpec)> {
    let words: Vec<String> = (0..5_000_u64).map(word).collect();
    let regex = |text: String| GrammarSpec::Regex(text);
    let gbnf = |text: &str| GrammarSpec::Gbnf(text.to_owned());
    let schema = GrammarSpec::JsonSchema;
    vec![
        ("5,000 words", regex(format!("({})*", words.join("|")))),
        ("[a-z]{1,5000}", regex("[a-z]{1,5000}".to_owned())),
        ("(a|aa|aaa)*", regex("(a|aa|aaa)*".to_owned())),
        ("(.*a.{14})*", regex("(.*a.{14})*".to_owned())),
        ("counts in counts", regex("(([a-z]{1,9} ){1,40}[0-9]{2,300}[,;]){1,90}".to_owned())),
        ("gbnf s ::= s s", gbnf("root ::= root root | [a-z] | \"(\" root \")\"")),
        ("gbnf s ::= s s s", gbnf("root ::= root root root | root root | [a-z ]+ | \"x\"")),
        ("enum of 10,000", schema(json!({"enum": (0..9_999).map(word).collect::<Vec<_>>()}))),
        ("anyOf, nested", schema(nested(4))),
        ("anyOf of 120 objects", schema(objects(120))),
        ("anyOf of 170 lists", schema(lists(170))),
        ("900 optional properties", schema(properties(900))),
        ("pattern in a list", schema(json!({"items": {"pattern": "^([a-z]{1,9}-){2,50}$"}}))),
        ("pattern .*a.{14}", schema(json!({"type": "string", "pattern": "^(.*a.{14})*$"}))),
        ("recursive anyOf", schema(recursive())),
        ("any value", schema(json!({}))),
    ]
}

fn word(index: u64) -> String {
    let mut rest = (index + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut letters = String::new();
    for _ in 0..9 {
        letters.push(char::from(b'a' + u8::try_from(rest % 26).unwrap_or(0)));
        rest /= 26;
    }
    letters
}

fn nested(depth: u32) -> Value {
    (0..depth).fold(json!({"type": "integer"}), |inner, _| {
        let object = |name: &str| json!({"properties": {name: inner}});
        json!({"anyOf": [object("a"), object("ab"), object("abc"), {"items": inner}]})
    })
}

/// Objects that differ in their last property alone.
fn objects(count: usize) -> Value {
    let object = |index: usize| {
        let last = format!("last_{index}");
        let properties = json!({"a": {}, "b": {"type": "string"}, "c": {"items": {}}, last: {}});
        json!({"type": "object", "properties": properties})
    };
    json!({"anyOf": (0..count).map(object).collect::<Vec<_>>()})
}

fn lists(count: usize) -> Value {
    let list = |index: usize| json!({"type": "array", "items": {}, "minItems": index % 7, "maxItems": 10 + index});
    json!({"anyOf": (0..count).map(list).collect::<Vec<_>>()})
}

fn properties(count: u64) -> Value {
    let properties = (0..count).map(|index| (word(index), json!({"type": ["string", "null"]})));
    json!({"properties": properties.collect::<serde_json::Map<_, _>>()})
}

fn recursive() -> Value {
    let tree = |name: &str| json!({"properties": {name: {"$ref": "#"}, "next": {"$ref": "#"}}});
    let mut all: Vec<Value> = (0..40).map(|index| tree(&format!("t{index}"))).collect();
    all.extend([json!({"items": {"$ref": "#"}}), json!({"type": "string"})]);
    json!({"anyOf": all})
}
