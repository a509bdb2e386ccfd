//! Masks along walks through grammars, over the tokens of the embedded model. The tests of the npm
//! package take the same walks in WebAssembly, and read the same file.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};
use setun_grammar::{Constraint, Grammar, GrammarLimits, GrammarSpec, Vocabulary};
use setun_text::{HfTokenizer, TokenTable};

/// Most tokens of a walk, and walks through each grammar.
const MOST: u32 = 60;
const SEEDS: std::ops::Range<u32> = 1..5;

/// Each form with its kind and text, as the npm package writes them.
fn forms() -> Vec<(&'static str, String)> {
    let schema = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 1, "maxLength": 12},
            "age": {"type": "integer", "minimum": 1, "maximum": 120},
            "height": {"type": "number"},
            "born": {"type": "string", "format": "date"},
            "pets": {"type": "array", "items": {"enum": ["cat", "dog", null]}, "maxItems": 3},
            "inner": {"$ref": "#/$defs/inner"},
        },
        "required": ["name", "age", "height", "born", "pets", "inner"],
        "additionalProperties": false,
        "$defs": {"inner": {
            "type": "object",
            "properties": {"code": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]+$"}},
            "additionalProperties": {"type": "boolean"},
        }},
    });
    let choices = json!(["a very large elephant", "a very", "the moon", "Größe", ""]);
    let lark = "start: (WORD \" \")+ NUMBER\nWORD: /[a-zäöü]+/\nNUMBER: /[0-9]{2,4}/";
    let recursive = "root ::= \"(\" root \")\" | [a-z]+ (\",\" root)?";
    let spread = json!({"type": "object", "x-guidance": {"whitespace_flexible": true}});
    vec![
        ("json_schema", schema.to_string()),
        ("json_schema", spread.to_string()),
        ("json_object", String::new()),
        ("regex", "([A-Z][a-z]+ ){2,5}(\\d{4}-\\d{2}|né(e)?)[^x]*".to_owned()),
        ("choice", choices.to_string()),
        ("lark", lark.to_owned()),
        ("gbnf", "root ::= [a-c]* \"c\" | \"ab\" [^\\x00-\\x1F]{2,9}".to_owned()),
        ("gbnf", recursive.to_owned()),
    ]
}

fn spec(kind: &str, text: &str) -> GrammarSpec {
    let json = || serde_json::from_str::<Value>(text).expect("JSON");
    match kind {
        "json_schema" => GrammarSpec::JsonSchema(json()),
        "json_object" => GrammarSpec::JsonObject,
        "regex" => GrammarSpec::Regex(text.to_owned()),
        "choice" => GrammarSpec::Choice(serde_json::from_value(json()).expect("an array of texts")),
        "lark" => GrammarSpec::Lark(text.to_owned()),
        _ => GrammarSpec::Gbnf(text.to_owned()),
    }
}

fn file(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// The embedded model's tokenizer, from the metadata of its file, and its end token.
fn vocabulary() -> Arc<Vocabulary> {
    let model = std::fs::read(file("crates/setun/embedded/stories.safetensors")).expect("a model");
    let (_, header) = safetensors::SafeTensors::read_metadata(&model).expect("a header");
    let metadata = header.metadata().as_ref().expect("files in it");
    let tokenizer = HfTokenizer::from_bytes(metadata["setun.file/tokenizer.json"].as_bytes());
    let table = TokenTable::new(&tokenizer.expect("a tokenizer"), &[1]);
    let handed_over = TokenTable::from_bytes(&table.to_bytes()).expect("the same table");
    Arc::new(Vocabulary::from_table(&handed_over).expect("it has bytes"))
}

/// Takes any allowed token, as a generator of numbers says, to an end or for [`MOST`] tokens: how
/// many they were, and a hash (FNV-1a of 32 bits) of all masks, word by word.
fn walk(grammar: &Grammar, seed: u32) -> (u32, u32) {
    let mut constraint = Constraint::new(grammar);
    let (mut state, mut hash) = (seed, 0x811c_9dc5_u32);
    for taken in 0..MOST {
        let mask = constraint.mask().expect("a token may come").clone();
        for word in mask.words() {
            hash = (hash ^ word).wrapping_mul(0x0100_0193);
        }
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let place = (state >> 8) as usize % mask.count();
        let token = mask.iter().nth(place).expect("one of them");
        constraint.accept(token).expect("it may come");
        if grammar.vocabulary().end_tokens().contains(token) {
            return (taken, hash);
        }
    }
    (MOST, hash)
}

fn walks() -> Value {
    let vocabulary = vocabulary();
    let walked = |(kind, text): (&str, String)| {
        let grammar = Grammar::new(&spec(kind, &text), &vocabulary, &GrammarLimits::default());
        let grammar = grammar.expect("it can be followed");
        let walk = |seed| {
            let (tokens, hash) = walk(&grammar, seed);
            json!({"seed": seed, "tokens": tokens, "hash": hash})
        };
        json!({"kind": kind, "text": text, "walks": SEEDS.map(walk).collect::<Vec<_>>()})
    };
    json!({"most": MOST, "forms": forms().into_iter().map(walked).collect::<Vec<_>>()})
}

#[test]
fn masks_are_the_same_everywhere() {
    let known = std::fs::read(file("tests/fixtures/grammar/walks.json")).expect("the fixture");
    let known: Value = serde_json::from_slice(&known).expect("JSON");
    assert_eq!(walks(), known);
}

#[test]
#[ignore = "writes the fixture anew"]
fn rewrite_fixture() {
    let json = serde_json::to_string_pretty(&walks()).expect("JSON") + "\n";
    std::fs::write(file("tests/fixtures/grammar/walks.json"), json).expect("written");
}
