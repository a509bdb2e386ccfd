//! The same text from fewer steps: tokens that prompt lookup proposes are verified all at once.
//!
//! ```text
//! cargo run --release -p setun --features embedded-model --example speculate [PROMPT [MODEL]]
//! ```

use std::{error::Error, time::Instant};

use setun::{Engine, GenerateOptions, Model};

/// Tokens of the text.
const TOKENS: usize = 120;

/// Most tokens that are proposed at once.
const LOOKAHEAD: usize = 12;

#[expect(clippy::print_stdout, reason = "an example shows what it does")]
fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let prompt = arguments.next().unwrap_or_else(|| ["The bird sang a song."; 4].join(" "));
    let model = arguments.next().map_or_else(Model::embedded, Model::open)?;
    let engine = Engine::builder(model).prefix_positions(0).build()?;
    let options = GenerateOptions::new().max_tokens(TOKENS).seed(1); // whatever else is set

    let begun = Instant::now();
    let expected = engine.complete(prompt.as_str(), options.clone())?;
    let plain_seconds = begun.elapsed().as_secs_f64();
    let plain_steps = pollster::block_on(engine.metrics())?.steps;

    let begun = Instant::now();
    let found = engine.complete(prompt.as_str(), options.lookahead(LOOKAHEAD))?;
    let seconds = begun.elapsed().as_secs_f64();
    if found.tokens != expected.tokens {
        return Err("speculation has changed the text".into());
    }
    let metrics = pollster::block_on(engine.metrics())?;
    println!("{prompt}{}", found.text);
    println!("{} of {} proposed tokens accepted", metrics.accepted_tokens, metrics.draft_tokens);
    println!("{plain_steps} steps without a draft, {} with it", metrics.steps - plain_steps);
    println!("{plain_seconds:.3} s without a draft, {seconds:.3} s with it");
    Ok(())
}
