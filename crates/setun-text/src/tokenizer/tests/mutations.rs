//! Damaged files: each is refused in words, or encodes and decodes a text without a panic.
//!
//! A panic that is caught is a failure here, because WebAssembly cannot catch one.
//! `SETUN_MUTATION=123` runs one case alone.

use serde_json::{Value, json};

use super::{HfTokenizer, seeds};
use crate::{TextError, Tokenizer as _, token_bytes::token_bytes};

const TEXT: &str = "ab  Ab <s>é日\u{344}😀\n12, ##b▁a A.";

/// Cases of a check, and of a long one.
const CASES: u64 = 1_000;
const LONG: u64 = 10_000;

#[test]
fn damaged_files_do_no_harm() {
    damage(0..CASES);
}

#[test]
#[ignore = "10,000 cases, in the stage `crates release`"]
fn many_damaged_files_do_no_harm() {
    damage(0..LONG);
}

fn damage(cases: std::ops::Range<u64>) {
    let one = std::env::var("SETUN_MUTATION").ok().and_then(|case| case.parse().ok());
    let cases = one.map_or(cases, |case| case..case + 1);
    let seeds = seeds::all();
    let (mut read, count) = (0, cases.end - cases.start);
    for case in cases {
        let mut random = Random(case);
        let (name, seed) = &seeds[random.below(seeds.len())];
        let bytes = if random.below(4) == 0 {
            damaged_bytes(seed.to_string().into_bytes(), &mut random)
        } else {
            let mut file = seed.clone();
            for _ in 0..=random.below(2) {
                change(&mut file, &mut random);
            }
            file.to_string().into_bytes()
        };
        match use_all(&bytes) {
            Ok(()) => read += 1,
            Err(error) => {
                let words = error.to_string();
                assert!(!words.contains("panicked"), "SETUN_MUTATION={case}, {name}: {words}");
            }
        }
    }
    assert!(count == 1 || (read > count / 20 && read < count), "{read} of {count} were read");
}

/// Reads a file, and goes all ways through it.
fn use_all(bytes: &[u8]) -> Result<(), TextError> {
    let tokenizer = HfTokenizer::from_bytes(bytes)?;
    let ids = tokenizer.encode(TEXT, true)?;
    assert!(ids.len() < 100_000 && tokenizer.min_tokens(TEXT) <= ids.len());
    assert!(tokenizer.decode(&ids, true)?.len() < 1 << 20);
    for id in 0..u32::try_from(tokenizer.vocab_size().min(300)).expect("few") {
        tokenizer.decode(&[id, id], false)?;
        if let (Some(decoder), Some(token)) =
            (tokenizer.inner.get_decoder(), tokenizer.id_to_token(id))
        {
            assert!(token_bytes(decoder, token).is_none_or(|bytes| bytes.len() < 1 << 20));
        }
    }
    tokenizer.decode(&[], false).map(drop)
}

/// `SplitMix64`.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Less than `limit`, which is not 0.
    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() >> 32).expect("32 bits") % limit
    }
}

fn damaged_bytes(mut bytes: Vec<u8>, random: &mut Random) -> Vec<u8> {
    let (from, to) = (random.below(bytes.len()), random.below(bytes.len()));
    match random.below(4) {
        0 => bytes.truncate(from),
        1 => bytes[from] ^= 1 << random.below(7),
        2 => drop(bytes.drain(from.min(to)..from.max(to).min(from.min(to) + 20))),
        _ => {
            let run = bytes[from..bytes.len().min(from + 30)].to_vec();
            bytes.splice(to..to, run);
        }
    }
    bytes
}

/// Changes one value of a file, and mostly none of the many tokens.
fn change(file: &mut Value, random: &mut Random) {
    let mut places = vec![];
    list_places(file, String::new(), &mut places);
    let mut place = &places[random.below(places.len())];
    for _ in 0..3 {
        if place.starts_with("/model/vocab/") {
            place = &places[random.below(places.len())];
        }
    }
    let other = file.pointer(&places[random.below(places.len())]).cloned().unwrap_or_default();
    let value = file.pointer_mut(place).expect("a place of the file");
    match (random.below(4), &mut *value) {
        (0, Value::Array(list)) if !list.is_empty() => drop(list.remove(random.below(list.len()))),
        (0, Value::Object(fields)) if !fields.is_empty() => {
            let name = fields.keys().nth(random.below(fields.len())).cloned().unwrap_or_default();
            fields.remove(&name);
        }
        (1, Value::Array(list)) => list.push(other),
        (1, Value::Object(fields)) => drop(fields.insert("content".to_owned(), other)),
        (2, value) => *value = other,
        (_, value) => *value = nasty(random),
    }
}

fn list_places(value: &Value, place: String, places: &mut Vec<String>) {
    let mut inside = |name: String, value: &Value| {
        let name = name.replace('~', "~0").replace('/', "~1");
        list_places(value, format!("{place}/{name}"), places);
    };
    match value {
        Value::Array(list) => {
            list.iter().enumerate().for_each(|(index, value)| inside(index.to_string(), value));
        }
        Value::Object(fields) => {
            fields.iter().for_each(|(name, value)| inside(name.clone(), value));
        }
        _ => {}
    }
    places.push(place);
}

/// Values that a reader may stumble over.
fn nasty(random: &mut Random) -> Value {
    const TYPES: [&str; 16] = [
        "ByteLevel",
        "Metaspace",
        "Replace",
        "Strip",
        "Fuse",
        "Sequence",
        "Prepend",
        "Precompiled",
        "NFKC",
        "BPE",
        "Unigram",
        "WordPiece",
        "WordLevel",
        "Split",
        "CTC",
        "BPEDecoder",
    ];
    match random.below(12) {
        0 => Value::Null,
        1 => json!(random.next()),
        2 => json!(random.below(300)),
        3 => json!(-1.5),
        4 => json!(true),
        5 => json!(""),
        6 => json!("é"),
        7 => json!("a".repeat(random.below(80))),
        8 => json!("^"),
        9 => json!([]),
        10 => json!({}),
        _ => json!(TYPES[random.below(TYPES.len())]),
    }
}
