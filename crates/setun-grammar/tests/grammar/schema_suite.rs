//! The JSON Schema Test Suite: what is followed gives valid values, and no invalid one is taken.

use crate::support::{Tokens, accepts, byte_level, bytes, fixture, sample, sentence_piece};
use serde_json::Value;
use setun_grammar::{FORMATS, Grammar, GrammarLimits, GrammarSpec, IGNORED_KEYWORDS, KEYWORDS};

struct Case {
    name: String,
    schema: Value,
    tests: Vec<(Value, bool)>,
}

fn all_cases() -> impl Iterator<Item = Case> {
    ["draft2020-12", "draft7"].into_iter().flat_map(cases)
}

/// The cases of an edition, each schema with its `$schema`.
fn cases(draft: &str) -> Vec<Case> {
    let file = String::from_utf8(fixture(&format!("json-schema/{draft}.jsonl"))).expect("UTF-8");
    let edition = match draft {
        "draft7" => "http://json-schema.org/draft-07/schema#",
        _ => "https://json-schema.org/draft/2020-12/schema",
    };
    let read = |line: &str| {
        let mut case: Value = serde_json::from_str(line).expect("a case");
        if let Some(map) = case["schema"].as_object_mut() {
            map.entry("$schema").or_insert(edition.into());
        }
        Case {
            name: format!("{draft} {}: {}", case["file"], case["about"]),
            schema: case["schema"].take(),
            tests: serde_json::from_value(case["tests"].take()).expect("values and verdicts"),
        }
    };
    file.lines().map(read).collect()
}

/// Whether a schema has a format that is an annotation here and an assertion in the suite.
fn has_annotation(schema: &Value) -> bool {
    let format = schema.get("format").and_then(Value::as_str);
    format.is_some_and(|format| !FORMATS.contains(&format))
}

fn validator(schema: &Value) -> jsonschema::Validator {
    // What a text contains is described and not checked, as the newer edition has it.
    jsonschema::options()
        .should_validate_formats(true)
        .without_content_encoding_support("base64")
        .without_content_media_type_support("application/json")
        .build(schema)
        .expect("a good schema")
}

/// Two texts for each schema, with real vocabularies. A text may get lost in a string that must
/// contain something; it is then no value, and counts.
#[test]
fn samples_are_valid() {
    let all = [Tokens::new(byte_level()), Tokens::new(sentence_piece())];
    let (mut samples, mut faults) = (0, Vec::new());
    for (index, case) in (0_u64..).zip(all_cases().filter(|case| !has_annotation(&case.schema))) {
        let tokens = &all[usize::from(index % 2 == 1)];
        let Ok(grammar) = tokens.grammar(&GrammarSpec::JsonSchema(case.schema.clone())) else {
            continue;
        };
        for seed in [index, 1_000_000 + index] {
            samples += 1;
            let valid = sample(tokens, &grammar, seed, 60)
                .and_then(|text| check(&case.schema, &tokens.bytes(&text)));
            faults.extend(valid.err().map(|fault| format!("{}: {fault}", case.name)));
        }
    }
    eprintln!("{} of {samples} samples are not valid:\n{}", faults.len(), faults.join("\n"));
    assert!(samples >= 800 && faults.len() * 20 <= samples, "{} of {samples}", faults.len());
}

fn check(schema: &Value, text: &[u8]) -> Result<(), String> {
    let text = std::str::from_utf8(text).map_err(|error| error.to_string())?;
    let value: Value = serde_json::from_str(text).map_err(|error| format!("{error}: {text}"))?;
    validator(schema).validate(&value).map_err(|error| format!("{error}: {text}"))
}

#[test]
fn no_invalid_value_is_a_text_of_the_grammar() {
    let vocabulary = bytes();
    // Closed objects have fewer of the valid values, and open ones nearly all.
    let (mut taken, mut refused) = ([0; 2], [0; 2]);
    let is_decided =
        |case: &Case| !has_annotation(&case.schema) && !case.name.contains("optional/content.json");
    for case in all_cases().filter(is_decided) {
        let spec = GrammarSpec::JsonSchema(case.schema.clone());
        for (index, spec) in [spec.clone(), spec.with_open_objects()].into_iter().enumerate() {
            let Ok(grammar) = Grammar::new(&spec, &vocabulary, &GrammarLimits::default()) else {
                continue;
            };
            for (value, valid) in &case.tests {
                let valid = *valid && validator(&case.schema).is_valid(value);
                match (accepts(&grammar, &value.to_string()), valid) {
                    (true, false) => panic!("{}: {} takes {value}", case.name, case.schema),
                    (true, true) => taken[index] += 1,
                    (false, true) => refused[index] += 1,
                    (false, false) => {}
                }
            }
        }
    }
    eprintln!("{taken:?} valid values are texts, {refused:?} are not");
    assert!(taken[0] >= 1000 && refused[0] < 120, "{taken:?}, {refused:?}");
    assert!(taken[1] > taken[0] && refused[1] < 100, "{taken:?}, {refused:?}");
}

#[test]
fn the_documentation_names_every_keyword() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/structured-output.md");
    let text = std::fs::read_to_string(folder).expect("it is there");
    for name in KEYWORDS.iter().chain(&FORMATS).chain(&IGNORED_KEYWORDS) {
        assert!(text.contains(&format!("`{name}`")), "{name}");
    }
}
