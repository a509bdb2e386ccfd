//! Times of masks: `mask_time tokenizer.json` or `mask_time FILE.model` of tiktoken, then maybe
//! `hostile`, for forms that are meant to be slow, and `near`, with 100 tokens left.
//!
//! Texts are drawn as a model of no knowledge writes them, which is harder than what a model
//! writes: strings of any characters, at any length.

#![expect(clippy::print_stdout, reason = "an example for the command line")]

mod hostile;
mod tiktoken;

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use setun_grammar::{Constraint, Grammar, GrammarError, GrammarLimits, GrammarSpec, Vocabulary};
use setun_text::{Draw, HfTokenizer, TokenMask, Tokenizer};
use tiktoken::Tiktoken;

/// Tokens of a text.
const TOKENS: u64 = 100;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let has = |word: &str| words.iter().any(|other| other == word);
    let tokenizer = tokenizer(words.first().expect("the path of a tokenizer"));
    let begun = Instant::now();
    let end = u32::try_from(tokenizer.vocab_size() - 1).expect("few tokens");
    let vocabulary = Arc::new(Vocabulary::new(&*tokenizer, &[end]).expect("it has bytes"));
    println!("{} tokens, read in {:?}", vocabulary.tokens(), begun.elapsed());
    let (forms, seeds) = if has("hostile") { (hostile::forms(), 4) } else { (forms(), 20) };
    for (name, spec) in forms {
        let begun = Instant::now();
        let grammar = Grammar::new(&spec, &vocabulary, &GrammarLimits::default());
        let compiled = begun.elapsed();
        match grammar {
            Ok(grammar) => println!(
                "{name}: compiled in {compiled:?}; {}",
                times(&grammar, seeds, has("near"))
            ),
            Err(error) => println!("{name}: refused in {compiled:?}: {error}"),
        }
    }
}

fn tokenizer(path: &str) -> Box<dyn Tokenizer> {
    let file = std::fs::read(path).expect("it can be read");
    match std::str::from_utf8(&file) {
        Ok(text) if !text.starts_with('{') => Box::new(Tiktoken::new(text)),
        _ => Box::new(HfTokenizer::from_bytes(&file).expect("a tokenizer.json")),
    }
}

fn times(grammar: &Grammar, seeds: u64, is_near: bool) -> String {
    let (mut times, mut errors) = (Vec::new(), Vec::new());
    for seed in 0..seeds {
        errors.extend(draw(grammar, seed, is_near, &mut times).err());
    }
    times.sort_unstable();
    let mean = times.iter().sum::<Duration>() / u32::try_from(times.len()).expect("few");
    let at = |percent: usize| times[(times.len() - 1) * percent / 100];
    let failed = errors.first().map(|error| format!("; {} errors: {error}", errors.len()));
    format!(
        "{} tokens, mean {mean:?}, median {:?}, 95 % {:?}, most {:?}{}",
        times.len(),
        at(50),
        at(95),
        at(100),
        failed.unwrap_or_default()
    )
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
    let mut forms = vec![
        ("schema", GrammarSpec::JsonSchema(person)),
        ("any object", GrammarSpec::JsonObject),
        ("regex", GrammarSpec::Regex("[A-Z][a-z]+( [A-Z][a-z]+)*, [0-9]{4}".to_owned())),
    ];
    let recursive =
        [("gbnf list", list), ("gbnf json", JSON), ("gbnf sums", SUMS), ("gbnf code", CODE)];
    forms.extend(recursive.map(|(name, text)| (name, GrammarSpec::Gbnf(text.to_owned()))));
    forms
}

/// JSON.
const JSON: &str = include_str!("../../tests/grammars/json.gbnf");

/// Sums and products of names and numbers.
const SUMS: &str = r#"
root ::= (sum "=" ws operand "\n")+
sum ::= operand ([-+*/] ws operand)*
operand ::= name | number | "(" ws sum ")" ws
name ::= [a-z] [a-z0-9_]* ws
number ::= [0-9]+ ws
ws ::= [ \t]*
"#;

/// A small language of statements.
const CODE: &str = include_str!("../../tests/grammars/code.gbnf");

/// Draws a text of up to 100 tokens and keeps the time of each.
fn draw(
    grammar: &Grammar,
    seed: u64,
    is_near: bool,
    times: &mut Vec<Duration>,
) -> Result<(), GrammarError> {
    let mut constraint = Constraint::new(grammar);
    if is_near {
        constraint.set_tokens_left(usize::try_from(TOKENS).expect("few"));
    }
    for index in 0..TOKENS {
        let begun = Instant::now();
        let mask = constraint.mask().cloned();
        let masked = begun.elapsed();
        let result = mask.and_then(|mask| {
            let token = any(&mask, seed, index);
            let begun = Instant::now();
            constraint.accept(token)?;
            Ok(begun.elapsed())
        });
        times.push(masked + result.clone().unwrap_or_default());
        if result.map(|_| constraint.is_finished())? {
            break;
        }
    }
    Ok(())
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
