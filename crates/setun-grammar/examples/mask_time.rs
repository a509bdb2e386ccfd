//! Times of masks: `mask_time tokenizer.json`, or a list of tokens in tiktoken's form.
//!
//! Texts are drawn as a model of no knowledge writes them, which is harder than what a model
//! writes: strings of any characters, at any length.

#![expect(clippy::print_stdout, reason = "an example for the command line")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use setun_grammar::{Constraint, Grammar, GrammarLimits, GrammarSpec, Vocabulary};
use setun_text::{Draw, HfTokenizer, TextError, TokenMask, Tokenizer};

/// Tokens that are told by their bytes; the last one ends a text.
struct Listed(Vec<Vec<u8>>);

impl Tokenizer for Listed {
    fn encode(&self, _: &str, _: bool) -> Result<Vec<u32>, TextError> {
        Ok(Vec::new())
    }
    fn decode(&self, _: &[u32], _: bool) -> Result<String, TextError> {
        Ok(String::new())
    }
    fn vocab_size(&self) -> usize {
        self.0.len() + 1
    }
    fn token_to_id(&self, _: &str) -> Option<u32> {
        None
    }
    fn id_to_token(&self, _: u32) -> Option<String> {
        None
    }
    fn token_bytes(&self, id: u32) -> Option<Vec<u8>> {
        self.0.get(id as usize).cloned()
    }
}

fn main() {
    let path = std::env::args().nth(1).expect("the path of a tokenizer");
    let file = std::fs::read(&path).expect("it can be read");
    let tokenizer: Box<dyn Tokenizer> = if file.first() == Some(&b'{') {
        Box::new(HfTokenizer::from_bytes(&file).expect("a tokenizer.json"))
    } else {
        Box::new(listed(&String::from_utf8(file).expect("text")))
    };
    let begun = Instant::now();
    let end = u32::try_from(tokenizer.vocab_size() - 1).expect("few tokens");
    let vocabulary = Arc::new(Vocabulary::new(&*tokenizer, &[end]).expect("it has bytes"));
    println!("{} tokens, read in {:?}", vocabulary.tokens(), begun.elapsed());
    for (name, spec) in forms() {
        let begun = Instant::now();
        let grammar = Grammar::new(&spec, &vocabulary, &GrammarLimits::default()).expect("good");
        let compiled = begun.elapsed();
        let mut times = Vec::new();
        for seed in 0..20 {
            draw(&grammar, seed, &mut times);
        }
        times.sort_unstable();
        let mean = times.iter().sum::<Duration>() / u32::try_from(times.len()).expect("few");
        let at = |percent: usize| times[(times.len() - 1) * percent / 100];
        println!(
            "{name}: compiled in {compiled:?}; {} tokens, mean {mean:?}, median {:?}, 95 % {:?}, most {:?}",
            times.len(),
            at(50),
            at(95),
            at(100)
        );
    }
}

fn forms() -> Vec<(&'static str, GrammarSpec)> {
    let person = json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "maxLength": 40 },
            "born": { "type": "string", "format": "date" },
            "tags": { "type": "array", "items": { "enum": ["new", "known", "left"] }, "maxItems": 4 },
            "address": { "type": "object", "properties": { "street": { "type": "string" }, "number": { "type": "integer", "minimum": 1 } }, "required": ["street"] },
        },
        "required": ["name", "tags", "address"],
        "additionalProperties": false,
    });
    let list = "root ::= \"[\" (value (\",\" value)*)? \"]\"\nvalue ::= root | [0-9]+ | \"\\\"\" [^\"\\\\]* \"\\\"\"";
    vec![
        ("schema", GrammarSpec::JsonSchema(person)),
        ("any object", GrammarSpec::JsonObject),
        ("regex", GrammarSpec::Regex("[A-Z][a-z]+( [A-Z][a-z]+)*, [0-9]{4}".to_owned())),
        ("gbnf", GrammarSpec::Gbnf(list.to_owned())),
    ]
}

/// Draws a text of up to 100 tokens and notes the time of each.
fn draw(grammar: &Grammar, seed: u64, times: &mut Vec<Duration>) {
    let mut constraint = Constraint::new(grammar);
    for index in 0..100 {
        let begun = Instant::now();
        let mask = constraint.mask().expect("a mask").clone();
        let masked = begun.elapsed();
        let token = any(&mask, seed, index);
        let begun = Instant::now();
        constraint.accept(token).expect("the mask has it");
        times.push(masked + begun.elapsed());
        if constraint.is_finished() {
            return;
        }
    }
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a part of a small number"
)]
fn any(mask: &TokenMask, seed: u64, index: u64) -> u32 {
    let place = Draw { seed, sequence: 0, index }.uniform(0) * mask.count() as f64;
    mask.iter().nth(place as usize).expect("a mask is never empty")
}

/// Lines of a token in base 64 and its id, ascending.
fn listed(text: &str) -> Listed {
    Listed(text.lines().filter_map(|line| line.split(' ').next()).map(base_64).collect())
}

fn base_64(text: &str) -> Vec<u8> {
    let (mut bits, mut length, mut bytes) = (0_u32, 0, Vec::new());
    for digit in text.bytes() {
        let value = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => break,
        };
        bits = bits << 6 | u32::from(value);
        length += 6;
        if length >= 8 {
            length -= 8;
            bytes.push((bits >> length).to_le_bytes()[0]);
        }
    }
    bytes
}
