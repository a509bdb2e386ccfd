//! Texts of a model of random weights, which only the constraint can make valid, under every
//! schema of the JSON Schema Test Suite.

use std::sync::Arc;

use jsonschema::Validator;
use serde_json::Value;
use setun::{Device, DeviceOptions, Model};
use setun_grammar::{Constraint, Grammar, GrammarError, GrammarLimits, GrammarSpec, Vocabulary};
use setun_tests::{fixture, run::Runner};
use setun_text::{Draw, TextError, TokenMask, Tokenizer};

/// Texts that run at once.
const AT_ONCE: usize = 64;

/// Tokens after which a text is brought to an end.
const FREE_TOKENS: usize = 60;

/// Tokens that no text reaches.
const MAX_TOKENS: usize = 400;

/// The id that ends a text, and begins one.
const END: u32 = 256;

/// The bytes as tokens.
struct Bytes;

impl Tokenizer for Bytes {
    fn encode(&self, text: &str, _: bool) -> Result<Vec<u32>, TextError> {
        Ok(text.bytes().map(u32::from).collect())
    }
    fn decode(&self, ids: &[u32], _: bool) -> Result<String, TextError> {
        let bytes: Vec<u8> = ids.iter().filter_map(|&id| u8::try_from(id).ok()).collect();
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
    fn vocab_size(&self) -> usize {
        257
    }
    fn token_to_id(&self, _: &str) -> Option<u32> {
        None
    }
    fn id_to_token(&self, _: u32) -> Option<String> {
        None
    }
    fn token_bytes(&self, id: u32) -> Option<Vec<u8>> {
        u8::try_from(id).ok().map(|byte| vec![byte])
    }
}

struct Case {
    schema: Value,
    grammar: Result<Grammar, GrammarError>,
}

fn cases() -> Vec<Case> {
    let vocabulary = Arc::new(Vocabulary::new(&Bytes, &[END]).expect("bytes"));
    let schemas = ["draft2020-12", "draft7"].into_iter().flat_map(|draft| {
        let file = fixture(&format!("json-schema/{draft}.jsonl"));
        let text = std::fs::read_to_string(file).expect("the suite");
        text.lines().map(|line| schema(line, draft)).collect::<Vec<_>>()
    });
    schemas
        .map(|schema| {
            let spec = GrammarSpec::JsonSchema(schema.clone());
            let grammar = Grammar::new(&spec, &vocabulary, &GrammarLimits::default());
            Case { schema, grammar }
        })
        .collect()
}

/// The schema of a case, with its edition.
fn schema(line: &str, draft: &str) -> Value {
    let mut case: Value = serde_json::from_str(line).expect("a case");
    let mut schema = case["schema"].take();
    if let Some(map) = schema.as_object_mut() {
        let edition = match draft {
            "draft7" => "http://json-schema.org/draft-07/schema#",
            _ => "https://json-schema.org/draft/2020-12/schema",
        };
        map.entry("$schema").or_insert(edition.into());
    }
    schema
}

fn validator(schema: &Value) -> Validator {
    // What a text contains is described and not checked, as the newer edition has it.
    jsonschema::options()
        .should_validate_formats(true)
        .without_content_encoding_support("base64")
        .without_content_media_type_support("application/json")
        .build(schema)
        .expect("a good schema")
}

#[test]
fn a_random_model_writes_valid_values() {
    let cases = cases();
    let supported: Vec<(&Value, &Grammar)> =
        cases.iter().filter_map(|case| Some((&case.schema, case.grammar.as_ref().ok()?))).collect();
    let folder = fixture("golden/bitnet-h64/packed");
    let options =
        DeviceOptions { device: Device::Cpu, threads: Some(1), ..DeviceOptions::default() };
    let mut runner = Runner::new(Model::open(folder).expect("a golden model"), options);
    let mut faults = Vec::new();
    for (chunk, cases) in supported.chunks(AT_ONCE).enumerate() {
        let grammars: Vec<&Grammar> = cases.iter().map(|(_, grammar)| *grammar).collect();
        for (text, (schema, _)) in write(&mut runner, &grammars, chunk as u64).iter().zip(cases) {
            assert!(is_narrow(text), "{schema}: {}", String::from_utf8_lossy(text));
            if let Err(fault) = check(schema, text) {
                faults.push(format!("{schema}\n    {fault}"));
            }
        }
    }
    eprintln!("{} of {} schemas are supported", supported.len(), cases.len());
    eprintln!("{} texts are not valid:\n{}", faults.len(), faults.join("\n"));
    assert!(supported.len() >= 400, "only {} schemas are supported", supported.len());
    assert!(faults.len() * 20 <= supported.len(), "more than one of 20");
}

/// Every schema is followed or refused for what it says.
#[test]
fn the_others_are_refused_before_the_first_token() {
    for case in cases() {
        match case.grammar {
            Ok(_)
            | Err(
                GrammarError::Keyword { .. }
                | GrammarError::KeywordValue { .. }
                | GrammarError::Schema { .. }
                | GrammarError::NeverEnds { .. },
            ) => {}
            Err(error) => panic!("{}: {error}", case.schema),
        }
    }
}

fn check(schema: &Value, text: &[u8]) -> Result<(), String> {
    let text = std::str::from_utf8(text).map_err(|error| error.to_string())?;
    let value: Value = serde_json::from_str(text).map_err(|error| format!("{error}: {text}"))?;
    validator(schema).validate(&value).map_err(|error| format!("{error}: {text}"))
}

/// Whether white space outside of strings is single spaces after commas and colons.
fn is_narrow(text: &[u8]) -> bool {
    let (mut in_string, mut escaped, mut before) = (false, false, b' ');
    text.iter().all(|&byte| {
        let fits =
            in_string || !byte.is_ascii_whitespace() || byte == b' ' && b",:".contains(&before);
        in_string ^= byte == b'"' && !escaped;
        escaped = in_string && byte == b'\\' && !escaped;
        before = byte;
        fits
    })
}

/// A text that follows each grammar, all in the same steps of the model.
fn write(runner: &mut Runner, grammars: &[&Grammar], seed: u64) -> Vec<Vec<u8>> {
    let mut texts: Vec<Text> = grammars
        .iter()
        .map(|grammar| Text {
            constraint: Constraint::new(grammar),
            tokens: vec![END],
            done: false,
        })
        .collect();
    let sequences: Vec<_> = grammars.iter().map(|_| runner.sequence()).collect();
    for index in 0..MAX_TOKENS as u64 {
        let running: Vec<usize> = (0..texts.len()).filter(|&place| !texts[place].done).collect();
        if running.is_empty() {
            break;
        }
        let last = running.iter().map(|&place| {
            let tokens = &texts[place].tokens;
            (sequences[place], &tokens[tokens.len() - 1..])
        });
        let logits = runner.step(&last.collect::<Vec<_>>());
        for (&place, logits) in running.iter().zip(&logits) {
            let draw = Draw { seed, sequence: place as u64, index };
            texts[place].go_on(logits, draw);
        }
    }
    let bytes = |text: Text| text.tokens.iter().filter_map(|&id| u8::try_from(id).ok()).collect();
    texts.into_iter().map(bytes).collect()
}

struct Text {
    constraint: Constraint,
    tokens: Vec<u32>,
    done: bool,
}

impl Text {
    fn go_on(&mut self, logits: &[f32], draw: Draw) {
        let mask = self.constraint.mask().expect("the text can go on").clone();
        let closing = (self.tokens.len() > FREE_TOKENS).then(|| closing(&mask, draw)).flatten();
        let token = closing.unwrap_or_else(|| sample(logits, &mask, draw.uniform(0)));
        self.constraint.accept(token).expect("the mask has it");
        self.tokens.push(token);
        self.done = token == END;
    }
}

/// What ends a text soon; not always, as what closes most things is a part of others.
fn closing(mask: &TokenMask, draw: Draw) -> Option<u32> {
    let order = [END].into_iter().chain(b"\"}]0:,tn".iter().map(|&byte| u32::from(byte)));
    order.into_iter().find(|&token| mask.contains(token)).filter(|_| draw.uniform(1) < 0.75)
}

/// A token of the mask, at temperature 1.
fn sample(logits: &[f32], mask: &TokenMask, uniform: f64) -> u32 {
    let greatest = mask.iter().map(|id| logits[id as usize]).fold(f32::MIN, f32::max);
    let weight = |id: u32| f64::from(logits[id as usize] - greatest).exp();
    let mut left = uniform * mask.iter().map(weight).sum::<f64>();
    let mut last = END;
    for id in mask.iter() {
        last = id;
        left -= weight(id);
        if left < 0.0 {
            break;
        }
    }
    last
}
