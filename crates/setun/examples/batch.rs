//! Requests that run together: each text is the one that its request gives alone.
//!
//! ```text
//! cargo run --release -p setun --features embedded-model --example batch [MODEL]
//! ```

use std::{
    error::Error,
    time::{Duration, Instant},
};

use setun::{Engine, GenerateOptions, Model};

/// What the texts begin with.
const PROMPTS: [&str; 4] =
    ["Once upon a time", "The cat sat", "One day, a little bird", "Tom had a red ball"];

#[expect(clippy::print_stdout, reason = "an example shows what it does")]
fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1);
    let model = path.map_or_else(Model::embedded, Model::open)?;
    let engine = Engine::builder(model)
        .max_concurrent(PROMPTS.len()) // the largest batch; other requests wait
        .queue(100) // and no more than these; one more is refused
        .batch_wait(Duration::from_millis(5)) // for others to begin with
        .build()?;
    let options = |seed| GenerateOptions::new().max_tokens(60).seed(seed);

    let begun = Instant::now();
    let mut alone = vec![];
    for (seed, prompt) in (0..).zip(PROMPTS) {
        alone.push(engine.complete(prompt, options(seed))?.text);
    }
    let seconds_alone = begun.elapsed().as_secs_f64();
    let before = pollster::block_on(engine.metrics())?.steps;

    let begun = Instant::now();
    let mut streams = vec![];
    for (seed, prompt) in (0..).zip(PROMPTS) {
        streams.push(engine.generate(prompt, options(seed))?); // does not wait
    }
    for ((prompt, stream), alone) in PROMPTS.iter().zip(streams).zip(&alone) {
        let text = stream.wait()?.text;
        if text != *alone {
            return Err("a batch has changed a text".into());
        }
        println!("{prompt}{}\n", text.lines().next().unwrap_or_default());
    }
    let seconds = begun.elapsed().as_secs_f64();
    let metrics = pollster::block_on(engine.metrics())?;
    println!("one after the other {before} steps, {seconds_alone:.2} s");
    println!(
        "together {} steps, {seconds:.2} s: the same {} texts",
        metrics.steps - before,
        PROMPTS.len()
    );
    Ok(())
}
