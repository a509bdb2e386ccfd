//! Tokenizers of strangers: each is refused in words, or encodes and decodes within bounds.

mod mutations;
mod refusals;
mod seeds;
mod texts;

use serde_json::Value;

use super::*;

fn open(file: &Value) -> Result<HfTokenizer, TextError> {
    HfTokenizer::from_bytes(file.to_string().as_bytes())
}

fn opened(file: &Value) -> HfTokenizer {
    open(file).unwrap_or_else(|error| panic!("{error}"))
}

/// A seed with another value at a place; the object there must exist.
fn with(mut file: Value, place: &str, value: impl Into<Value>) -> Value {
    let (object, name) = place.rsplit_once('/').expect("a place within an object");
    let object = file.pointer_mut(object).unwrap_or_else(|| panic!("no {place}"));
    match object {
        Value::Array(list) => list[name.parse::<usize>().expect("an index")] = value.into(),
        object => object[name] = value.into(),
    }
    file
}

#[test]
fn says_where_a_file_is_broken() {
    let error = HfTokenizer::from_bytes(b"{\"version\": \"1.0\",").expect_err("half a file");
    assert!(error.to_string().contains("line 1"), "{error}");
    let error = HfTokenizer::from_bytes(b"\xff\xfe").expect_err("not even text");
    assert!(matches!(error, TextError::TokenizerFile { .. }));
    let error = HfTokenizer::from_bytes(b"[]").expect_err("a list");
    assert_eq!(
        error.to_string(),
        "tokenizer.json cannot be read: expected an object, found a list"
    );
}

/// A cut within a decoder panicked.
#[test]
fn a_file_that_ends_anywhere_is_refused() {
    for (name, seed) in seeds::all() {
        let bytes = seed.to_string().into_bytes();
        for cut in 0..bytes.len() {
            let Err(error) = HfTokenizer::from_bytes(&bytes[..cut]) else {
                panic!("{name} cut at {cut}");
            };
            assert!(error.to_string().starts_with("tokenizer.json cannot be read: EOF"), "{error}");
        }
    }
}

#[test]
fn values_may_not_be_nested_deep() {
    let deep = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
    let file = |levels| format!("{{\"normalizer\": {}}}", deep(levels));
    for (levels, expected) in [(40, "more than 32 levels"), (100_000, "recursion limit")] {
        let error = HfTokenizer::from_bytes(file(levels).as_bytes()).expect_err("deep");
        assert!(error.to_string().contains(expected), "{error}");
    }
}
