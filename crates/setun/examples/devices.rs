//! Devices that a model can run on here, and their speed.
//!
//! ```text
//! cargo run --release -p setun --features embedded-model --example devices [MODEL]
//! ```

use std::{error::Error, time::Instant};

use setun::{
    DeviceInfo, DeviceOptions, Inferencer, InferencerOptions, Model, Ragged, SamplerOptions,
    TokenLogits, text::Sampler,
};

/// Tokens of a prompt and of a text.
const TOKENS: u16 = 48;

#[expect(clippy::print_stdout, reason = "an example shows what it does")]
fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1);
    for DeviceInfo { select, device, level, chosen, note } in setun::devices() {
        let Some(select) = select else { continue };
        let model = path.as_ref().map_or_else(Model::embedded, Model::open)?;
        let device_options = DeviceOptions { device: select, ..DeviceOptions::default() };
        let options = InferencerOptions { logits: TokenLogits::None, ..Default::default() };
        let mut inferencer = Inferencer::new(model.load_onto(device_options)?.model, options);
        let (prefill, decode) = tokens_per_second(&mut inferencer)?;
        let marker = if chosen { " (the default)" } else { "" };
        println!("{device} {level}{marker}: prompt {prefill:.0}, text {decode:.0} tokens/s {note}");
    }
    Ok(())
}

/// Of a prompt, and of the text after it.
fn tokens_per_second(inferencer: &mut Inferencer) -> Result<(f64, f64), Box<dyn Error>> {
    let mut greedy = Sampler::new(SamplerOptions::default())?;
    let query = Ragged::from_rows([(1..=u32::from(TOKENS)).collect::<Vec<_>>()]);
    let mut seconds = [0.0; 2];
    for _ in 0..2 {
        // The first time steps are made ready; only the second counts.
        let mut cache = inferencer.cache(1)?;
        let begun = Instant::now();
        let first = inferencer.prefill_blocking(&query, &mut cache, &mut greedy)?;
        seconds[0] = begun.elapsed().as_secs_f64();
        let begun = Instant::now();
        let query = Ragged::from_rows([first.token_ids.row(0)]);
        let text = inferencer.decode_blocking(&query, &mut cache, TOKENS.into(), &mut greedy)?;
        seconds[1] = begun.elapsed().as_secs_f64() * f64::from(TOKENS);
        seconds[1] /= f64::from(u16::try_from(text.token_ids.values().len())?);
    }
    Ok((f64::from(TOKENS) / seconds[0], f64::from(TOKENS) / seconds[1]))
}
