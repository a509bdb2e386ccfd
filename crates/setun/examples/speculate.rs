//! The same text from fewer steps: tokens that prompt lookup proposes are verified all at once.
//!
//! ```text
//! cargo run --release -p setun --features embedded-model --example speculate [PROMPT [MODEL]]
//! ```

use std::{error::Error, time::Instant};

use setun::{
    DeviceOptions, Model, Ragged, SamplerOptions, TokenLogits,
    speculation::{PromptLookup, SpeculationOptions, SpeculativeInferencer, Verify},
    text::Sampler,
};

/// Tokens of the text.
const TOKENS: usize = 120;

#[expect(clippy::print_stdout, reason = "an example shows what it does")]
fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let prompt = arguments.next().unwrap_or_else(|| ["The bird sang a song."; 4].join(" "));
    let model = arguments.next().map_or_else(Model::embedded, Model::open)?;
    let tokenizer = model.tokenizer()?.ok_or("a model without a tokenizer")?.clone();
    let query = Ragged::from_rows([tokenizer.encode(&prompt, true)?]);
    let mut strategy = Sampler::new(SamplerOptions::default())?; // greedy; any other will do
    let inferencer = model.into_inferencer(DeviceOptions::default())?;
    let (draft, options) = (Box::new(PromptLookup::default()), SpeculationOptions::default());
    let mut speculative = SpeculativeInferencer::new(inferencer, draft, options)?;
    speculative.inferencer().set_logits(TokenLogits::None);
    let cost = speculative.calibrate_blocking()?;
    println!("a proposed token costs {cost:.2} of a step");

    let plain = speculative.inferencer();
    let mut cache = plain.cache(1)?;
    let first = plain.prefill_blocking(&query, &mut cache, &mut strategy)?.next();
    let mut fork = plain.fork(&cache)?;
    let begun = Instant::now();
    let expected = plain.decode_blocking(&first, &mut cache, TOKENS, &mut strategy)?;
    let plain_seconds = begun.elapsed().as_secs_f64();

    let begun = Instant::now();
    let verify = Verify::Equal(&mut strategy);
    let found = speculative.decode_blocking(&first, &mut fork, TOKENS, verify)?;
    let seconds = begun.elapsed().as_secs_f64();
    if found.inferred != expected {
        return Err("speculation has changed the text".into());
    }
    let text = [first.row(0), found.inferred.token_ids.row(0)].concat();
    println!("{prompt}{}", tokenizer.decode(&text, true)?);
    let counts = found.counts;
    println!("{} of {} proposed tokens accepted", counts.accepted, counts.proposed);
    println!("{} tokens in {} steps: the same text", counts.tokens, counts.verifications);
    println!("{plain_seconds:.3} s without a draft, {seconds:.3} s with it");
    Ok(())
}
