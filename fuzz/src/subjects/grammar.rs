//! A schema, grammar or expression up to the first byte of zero, and choices of tokens behind it.

use std::sync::{Arc, OnceLock};

use setun_grammar::{Constraint, Grammar, GrammarLimits, GrammarSpec, Vocabulary};
use setun_text::{TextError, Tokenizer};

use crate::{MemoryBound, run_bounded, subjects::input::Input};

/// What [`GrammarLimits`] allow: states of automata, symbols, and work that allocates.
const MEMORY: MemoryBound = MemoryBound { fixed: 512 << 20, each: 4 << 10 };

/// Most tokens of a text.
const MAX_TOKENS: usize = 24;

/// The token that ends a text: the one after those of single bytes.
const END: u32 = 256;

/// Follows a JSON schema.
///
/// # Panics
///
/// If that exceeds its bounds, or a token that is allowed is not taken.
pub fn json_schema(bytes: &[u8]) {
    run(bytes, |text| serde_json::from_str(text).ok().map(GrammarSpec::JsonSchema));
}

/// Follows a grammar in Lark's notation.
///
/// # Panics
///
/// As [`json_schema`].
pub fn lark(bytes: &[u8]) {
    run(bytes, |text| Some(GrammarSpec::Lark(text.to_owned())));
}

/// Follows a grammar in GBNF.
///
/// # Panics
///
/// As [`json_schema`].
pub fn gbnf(bytes: &[u8]) {
    run(bytes, |text| Some(GrammarSpec::Gbnf(text.to_owned())));
}

/// Follows a regular expression.
///
/// # Panics
///
/// As [`json_schema`].
pub fn regex(bytes: &[u8]) {
    run(bytes, |text| Some(GrammarSpec::Regex(text.to_owned())));
}

fn run(bytes: &[u8], spec: fn(&str) -> Option<GrammarSpec>) {
    static VOCABULARY: OnceLock<Arc<Vocabulary>> = OnceLock::new();
    let vocabulary = VOCABULARY
        .get_or_init(|| Arc::new(Vocabulary::new(&Bytes, &[END]).expect("a token for each byte")));
    run_bounded(bytes.len(), MEMORY, || {
        let mut parts = bytes.splitn(2, |byte| *byte == 0);
        let text = String::from_utf8_lossy(parts.next().unwrap_or_default());
        let Some(spec) = spec(&text) else { return };
        let compiled = Grammar::new(&spec, vocabulary, &GrammarLimits::default());
        // What is refused is an error.
        let Ok(grammar) = compiled else { return };
        follow(Constraint::new(&grammar), Input(parts.next().unwrap_or_default()));
    });
}

/// Chooses tokens until the text ends or a limit is reached.
fn follow(mut constraint: Constraint, mut input: Input<'_>) {
    for taken in 0..MAX_TOKENS {
        let Ok(mask) = constraint.mask() else { return };
        let allowed: Vec<u32> = mask.iter().collect();
        let token = input.pick(&allowed);
        if constraint.accept(token).is_err() {
            // A limit, which is the answer from now on.
            assert!(constraint.mask().is_err(), "token {token} after {taken} was allowed");
            return;
        }
        if token == END {
            assert!(constraint.is_finished());
            return;
        }
    }
    if constraint.rollback(MAX_TOKENS / 2).is_ok() {
        assert!(constraint.mask().is_err() || constraint.taken() == MAX_TOKENS / 2);
    }
}

/// A token for each byte, some for several, and the end.
struct Bytes;

/// Tokens of several bytes, after the end.
const WORDS: [&str; 8] = ["\": ", "\", \"", "true", "null", "10", "  ", "abc", "\u{e9}"];

impl Tokenizer for Bytes {
    fn encode(&self, text: &str, _: bool) -> Result<Vec<u32>, TextError> {
        Ok(text.bytes().map(u32::from).collect())
    }

    fn decode(&self, ids: &[u32], _: bool) -> Result<String, TextError> {
        let bytes: Vec<u8> = ids.iter().filter_map(|&id| self.token_bytes(id)).flatten().collect();
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn vocab_size(&self) -> usize {
        END as usize + 1 + WORDS.len()
    }

    fn token_to_id(&self, token: &str) -> Option<u32> {
        (token == "<end>").then_some(END)
    }

    fn id_to_token(&self, id: u32) -> Option<String> {
        if id == END { Some("<end>".into()) } else { self.decode(&[id], false).ok() }
    }

    fn token_bytes(&self, id: u32) -> Option<Vec<u8>> {
        if let Ok(byte) = u8::try_from(id) {
            return Some(vec![byte]);
        }
        let word = (id as usize).checked_sub(END as usize + 1)?;
        Some(WORDS.get(word)?.as_bytes().to_vec())
    }
}
