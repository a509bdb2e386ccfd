//! Token ids in, logits `[B, T, V]` out: what a model says after each token of two texts.
//!
//! ```text
//! cargo run --release -p setun --features embedded-model --example forward [MODEL]
//! ```

use std::error::Error;

use setun::{
    DeviceOptions, Model, Ragged, SamplerOptions,
    text::{Sampler, logprob},
};

#[expect(clippy::print_stdout, reason = "an example shows what it does")]
fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1);
    let model = path.map_or_else(Model::embedded, Model::open)?;
    let tokenizer = model.tokenizer()?.ok_or("a model without a tokenizer")?.clone();
    let texts = ["Once upon a time, there was a little", "The cat sat"];
    let rows = texts.map(|text| tokenizer.encode(text, true)).into_iter();
    let query = Ragged::from_rows(rows.collect::<Result<Vec<_>, _>>()?);

    let mut inferencer = model.into_inferencer(DeviceOptions::default())?;
    let mut cache = inferencer.cache(query.rows())?;
    let mut greedy = Sampler::new(SamplerOptions::default())?;
    let step = inferencer.prefill_blocking(&query, &mut cache, &mut greedy)?;

    let logits = step.token_logits.padded(0.0); // [B, T, V]
    let (batch, vocabulary) = (query.rows(), step.token_logits.width());
    println!("logits [{batch}, {}, {vocabulary}]", logits.len() / batch / vocabulary);
    for (row, text) in texts.into_iter().enumerate() {
        let best = step.token_ids.row(row)[0];
        let last = cache.lengths()[row] - 1;
        let logits = step.token_logits.item(row, last).ok_or("logits of all tokens")?;
        let probability = logprob(logits, best).exp();
        let next = tokenizer.decode(&[best], false)?;
        println!("{text:?} is followed by {next:?} with probability {probability:.3}");
    }
    Ok(())
}
