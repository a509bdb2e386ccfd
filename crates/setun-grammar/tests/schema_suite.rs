//! The JSON Schema Test Suite: what is supported gives valid values, the rest is refused.

mod support;

use std::collections::BTreeMap;

use serde_json::Value;
use setun_grammar::{Grammar, GrammarLimits, GrammarSpec};
use support::{Tokens, accepts, byte_level, bytes, fixture, sample, sentence_piece};

struct Case {
    name: String,
    schema: Value,
    tests: Vec<(Value, bool)>,
}

fn cases(draft: &str) -> Vec<Case> {
    let file = String::from_utf8(fixture(&format!("json-schema/{draft}.jsonl"))).expect("UTF-8");
    let read = |line: &str| {
        let mut case: Value = serde_json::from_str(line).expect("a case");
        if draft == "draft7"
            && case["schema"].is_object()
            && case["schema"].get("$schema").is_none()
        {
            case["schema"]["$schema"] = "http://json-schema.org/draft-07/schema#".into();
        }
        Case {
            name: format!("{draft} {}: {}", case["file"], case["about"]),
            schema: case["schema"].take(),
            tests: serde_json::from_value(case["tests"].take()).expect("values and verdicts"),
        }
    };
    file.lines().map(read).collect()
}

fn validator(schema: &Value) -> jsonschema::Validator {
    let mut schema = schema.clone();
    if let Some(map) = schema.as_object_mut() {
        map.entry("$schema").or_insert("https://json-schema.org/draft/2020-12/schema".into());
    }
    // What a text contains is told and not checked, as later drafts have it.
    jsonschema::options()
        .should_validate_formats(true)
        .without_content_encoding_support("base64")
        .without_content_media_type_support("application/json")
        .build(&schema)
        .expect("a good schema")
}

#[test]
fn samples_are_valid() {
    let (mut supported, mut valid) = (0, 0);
    let mut refused: BTreeMap<String, usize> = BTreeMap::new();
    let all = [Tokens::new(byte_level()), Tokens::new(sentence_piece())];
    for (index, case) in cases("draft2020-12").into_iter().chain(cases("draft7")).enumerate() {
        let tokens = &all[index % 2];
        let grammar = match tokens.grammar(&GrammarSpec::JsonSchema(case.schema.clone())) {
            Ok(grammar) => grammar,
            Err(error) => {
                let words = error.to_string();
                if std::env::var("SHOW").is_ok() {
                    println!("REFUSED {} {words}", case.name);
                }
                *refused
                    .entry(words.split(" at ").next().unwrap_or_default().to_owned())
                    .or_default() += 1;
                continue;
            }
        };
        let check = |tokens_taken: &[u32]| -> Result<(), String> {
            let text = tokens.bytes(tokens_taken);
            let text = std::str::from_utf8(&text).map_err(|error| error.to_string())?;
            let value: Value =
                serde_json::from_str(text).map_err(|error| format!("{error}: {text}"))?;
            validator(&case.schema).validate(&value).map_err(|error| format!("{error}: {text}"))
        };
        for seed in [index as u64, 1_000_000 + index as u64] {
            supported += 1;
            match sample(tokens, &grammar, seed, 60).and_then(|text| check(&text)) {
                Ok(()) => valid += 1,
                Err(reason) => println!("{}: {}\n    {reason}", case.name, case.schema),
            }
        }
    }
    println!("{valid} of {supported} samples are valid; refused: {refused:#?}");
    assert!(valid * 100 >= supported * 95);
}

#[test]
fn no_invalid_value_is_a_text_of_the_grammar() {
    let vocabulary = bytes();
    let (mut taken, mut refused, mut faults) = (0, 0, Vec::new());
    for case in cases("draft2020-12").into_iter().chain(cases("draft7")) {
        let spec = GrammarSpec::JsonSchema(case.schema.clone());
        let Ok(grammar) = Grammar::new(&spec, &vocabulary, &GrammarLimits::default()) else {
            continue;
        };
        for (value, valid) in &case.tests {
            if case.name.contains("optional/content.json") {
                continue;
            }
            let valid = *valid && validator(&case.schema).is_valid(value);
            match (accepts(&grammar, &value.to_string()), valid) {
                (true, false) => {
                    faults.push(format!("{}: {} takes {value}", case.name, case.schema))
                }
                (true, true) => taken += 1,
                (false, true) => {
                    refused += 1;
                    if std::env::var("SHOW").is_ok() {
                        println!("NOT {} {} {value}", case.name, case.schema);
                    }
                }
                (false, false) => {}
            }
        }
    }
    println!("{taken} valid values are texts, {refused} are not");
    for fault in &faults {
        println!("{fault}");
    }
    assert!(faults.is_empty());
}
