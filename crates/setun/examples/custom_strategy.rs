//! A custom sampling step and a custom strategy: texts without the letter e, and every token
//! chosen by a rule.
//!
//! ```text
//! cargo run --release -p setun --features embedded-model --example custom_strategy [MODEL]
//! ```

use std::error::Error;

use setun::{
    DeviceOptions, Engine, GenerateOptions, LogitsProcessor, Model, Ragged,
    text::{Candidates, Step, Strategy, TextError, Tokenizer},
};

const PROMPT: &str = "Tom had a ball";

/// Leaves out tokens by their text: a step among those of sampling, for the engine.
struct Without {
    banned: Vec<bool>, // by token
}

impl LogitsProcessor for Without {
    fn process(&self, candidates: &mut Candidates, _: &Step<'_>) -> Result<(), TextError> {
        candidates.retain(|token, _| !self.banned[token as usize]);
        Ok(())
    }
}

/// The best token at even places, the second best at odd ones: instead of sampling, for the
/// inferencer.
struct Alternate;

impl Strategy for Alternate {
    fn choose(&mut self, logits: &[f32], step: &Step<'_>) -> Result<u32, TextError> {
        let mut order: Vec<u32> = (0..).zip(logits).map(|(token, _)| token).collect();
        let logit = |token: u32| logits[token as usize];
        order.sort_by(|&a, &b| logit(b).total_cmp(&logit(a)));
        Ok(order[step.history.len() % 2])
    }
}

/// Which tokens have the letter in their text.
fn tokens_with(letter: char, tokenizer: &dyn Tokenizer) -> Result<Vec<bool>, TextError> {
    let vocabulary = u32::try_from(tokenizer.vocab_size()).unwrap_or(u32::MAX);
    (0..vocabulary).map(|token| Ok(tokenizer.decode(&[token], false)?.contains(letter))).collect()
}

#[expect(clippy::print_stdout, reason = "an example shows what it does")]
fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1);
    let open = || path.as_ref().map_or_else(Model::embedded, Model::open);
    let model = open()?;
    let tokenizer = model.tokenizer()?.ok_or("a model without a tokenizer")?.clone();

    let banned = tokens_with('e', &*tokenizer)?;
    let options =
        GenerateOptions::new().max_tokens(40).seed(1).logits_processors([Without { banned }]);
    let text = Engine::builder(model).build()?.complete(PROMPT, options)?.text;
    println!("{PROMPT}{text}\n{} times the letter e", text.matches('e').count());

    let mut inferencer = open()?.into_inferencer(DeviceOptions::default())?;
    let mut cache = inferencer.cache(1)?;
    let query = Ragged::from_rows([tokenizer.encode(PROMPT, true)?]);
    let first = inferencer.prefill_blocking(&query, &mut cache, &mut Alternate)?.next();
    let rest = inferencer.decode_blocking(&first, &mut cache, 30, &mut Alternate)?;
    let text = [first.row(0), rest.token_ids.row(0)].concat();
    println!("{PROMPT}{}", tokenizer.decode(&text, true)?);
    Ok(())
}
