//! Logits that a screened head leaves to be computed: candidates of each step, on a model's own texts.
//! `setun bench` tells the same of greedy steps; this also of the lists that sampling requests, and
//! what a row costs that they leave undecided.
//!
//! ```text
//! cargo run --release -p setun --features embedded-model --example head_candidates [MODEL [STEPS]]
//! ```

use std::{
    env,
    error::Error,
    time::{Duration, Instant},
};

use setun::{
    DeviceOptions, HeadType, Model,
    forward::{Batch, Outputs, PagedCache, Profile, RequestedOutput, Row},
    ops::{
        noise::Noise,
        top_logits::{NoisyScores, TopLogitsRequest},
    },
};

/// Sequences begin with each of this many tokens.
const SEQUENCES: u32 = 8;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let path = arguments.next();
    let steps = arguments.next().map_or(Ok(128), |steps| steps.parse())?;
    let model = || -> Result<Model, Box<dyn Error>> {
        match &path {
            Some(path) => Ok(Model::open(path)?),
            #[cfg(feature = "embedded-model")]
            None => Ok(Model::embedded()?),
            #[cfg(not(feature = "embedded-model"))]
            None => Err("no MODEL, and no embedded one in this build".into()),
        }
    };
    for (k, temperature) in [(1, None), (48, None), (1, Some(0.8)), (1, Some(1.2))] {
        report(model()?, (k, temperature), steps)?;
    }
    undecided(model()?, steps)
}

/// Continues some one-token texts by the best token of each step, or the one that is drawn.
#[expect(clippy::print_stdout, reason = "an example shows what it does")]
fn report(
    model: Model,
    (k, temperature): (usize, Option<f32>),
    steps: usize,
) -> Result<(), Box<dyn Error>> {
    let name = model.name().to_owned();
    let options = DeviceOptions { head: HeadType::Screened, ..DeviceOptions::default() };
    let mut model = model.load_onto(options)?.model;
    model.set_profiled(true);
    let mut all = Profile::default();
    for first in 0..SEQUENCES {
        let mut cache = PagedCache::new(model.block_positions(), 1 << 16);
        let sequence = cache.create();
        let (mut token, mut outputs) = (100 + 7 * first, Outputs::default());
        for position in 0..steps.min(model.context_length()) {
            cache.extend(sequence, 1)?;
            let mut batch = Batch::default();
            let key = u64::from(first) << 32 | position as u64;
            let noise =
                temperature.map(|temperature| NoisyScores { noise: Noise::new(key), temperature });
            let request = TopLogitsRequest { k, noise, ..<_>::default() };
            batch.push_run(sequence, position, &[token], RequestedOutput::TopLogits(request));
            pollster::block_on(model.forward(&batch, &mut cache, &mut outputs))?;
            all.add(model.profile().ok_or("a level that does not count")?);
            match outputs.rows().next() {
                Some(Row::Ranked([best, ..])) => token = best.token,
                _ => return Err("a row without ranked tokens".into()),
            }
        }
    }
    let Profile { steps, mut candidates, full_heads, .. } = all;
    candidates.sort_unstable();
    let share = |hundredths: usize| {
        let found = candidates.get(candidates.len().saturating_sub(1) * hundredths / 100);
        found.map_or("none".to_owned(), u32::to_string)
    };
    println!(
        "{name}: k {k}, temperature {}, {steps} steps: candidates median {}, 99 % {}, most {}; in full {full_heads}",
        temperature.unwrap_or(0.0),
        share(50),
        share(99),
        share(100),
    );
    Ok(())
}

/// Makes the head run alone after each step of a greedy text, and in turn the whole step again with all
/// logits, one thread each. Both give the same logits.
#[expect(clippy::print_stdout, reason = "an example shows what it does")]
fn undecided(model: Model, steps: usize) -> Result<(), Box<dyn Error>> {
    let name = model.name().to_owned();
    let head = HeadType::Screened;
    let options = DeviceOptions { head, threads: Some(1), ..DeviceOptions::default() };
    let mut model = model.load_onto(options)?.model;
    let mut cache = PagedCache::new(model.block_positions(), 1 << 16);
    let (sequence, mut token) = (cache.create(), 100);
    let (mut outputs, mut alone, mut again) =
        (Outputs::default(), Outputs::default(), Outputs::default());
    let mut times = [vec![], vec![], vec![]];
    for position in 0..steps.min(model.context_length()) {
        cache.extend(sequence, 1)?;
        let mut batch = Batch::default();
        let few = TopLogitsRequest { k: 1, ..<_>::default() };
        batch.push_run(sequence, position, &[token], RequestedOutput::TopLogits(few));
        let begun = Instant::now();
        pollster::block_on(model.forward(&batch, &mut cache, &mut outputs))?;
        times[0].push(begun.elapsed());
        let begun = Instant::now();
        pollster::block_on(model.head_logits(&[0], &mut alone))?;
        times[1].push(begun.elapsed());
        batch.request_logits(0);
        let begun = Instant::now();
        pollster::block_on(model.forward(&batch, &mut cache, &mut again))?;
        times[2].push(begun.elapsed());
        match outputs.rows().next() {
            Some(Row::Ranked([best, ..])) if alone.logits() == again.logits() => token = best.token,
            _ => return Err("a row without ranked tokens, or with other logits".into()),
        }
    }
    let [step, alone, again] = times.map(median);
    println!(
        "{name}: a step {step:.0} µs, and where it decides nothing: {alone:.0} µs for the head alone, {again:.0} µs for the step again",
    );
    Ok(())
}

/// In microseconds.
fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times.get(times.len() / 2).map_or(0.0, Duration::as_secs_f64) * 1e6
}
