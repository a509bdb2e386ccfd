//! Metrics of a running engine: times of passes and tokens, memory at its peak, where the time goes.
//!
//! ```text
//! cargo run --release -p setun --features embedded-model --example monitor [MODEL]
//! ```

use std::{error::Error, time::Duration};

use setun::{Engine, GenerateOptions, Model, TimeHistogram};

/// Texts at once, and tokens of each.
const TEXTS: usize = 6;
const TOKENS: usize = 50;

#[expect(clippy::print_stdout, reason = "an example shows what it does")]
fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1);
    let model = path.map_or_else(Model::embedded, Model::open)?;
    let engine = Engine::builder(model).build()?;
    pollster::block_on(engine.start_profile())?;
    let options = GenerateOptions::new().max_tokens(TOKENS).seed(1);
    let streams = engine.generate_many("Once upon a time", options, TEXTS)?;

    let mut peak = 0;
    for stream in streams {
        stream.wait()?;
        // The cache grows with use and never shrinks.
        peak = peak.max(pollster::block_on(engine.memory())?.sum());
    }
    let metrics = pollster::block_on(engine.metrics())?;
    let times = [
        ("in the queue", &metrics.queue_time),
        ("to the first token", &metrics.time_to_first_token),
        ("between tokens", &metrics.inter_token_latency),
        ("of a pass", &metrics.step_time),
    ];
    for (name, times) in times {
        println!("time {name}: {}", quantiles(times));
    }
    let (mean, most) = (metrics.step_rows.mean().unwrap_or(0.0), metrics.step_rows.most());
    println!("rows of a pass: {mean:.1}, most {most}");
    println!("memory at its peak: {:.1} MB", megabytes(peak));
    println!("{} tokens of {} texts", metrics.tokens, metrics.finished);

    let profile = pollster::block_on(engine.end_profile())?;
    let mut operations = profile.map(|profile| profile.decode.steps.ops).unwrap_or_default();
    operations.sort_by_key(|operation| std::cmp::Reverse(operation.time));
    for operation in operations.iter().take(3) {
        let role = operation.role.unwrap_or_default();
        println!("{} {role}: {:.1?} in all", operation.name, operation.time);
    }
    Ok(())
}

fn quantiles(times: &TimeHistogram) -> String {
    let [half, most] = [0.5, 0.99].map(|share| times.quantile(share).unwrap_or(Duration::ZERO));
    format!("median {half:.1?}, 99 of 100 below {most:.1?}")
}

#[expect(clippy::cast_precision_loss, reason = "a size for people")]
fn megabytes(bytes: usize) -> f64 {
    bytes as f64 / 1e6
}
