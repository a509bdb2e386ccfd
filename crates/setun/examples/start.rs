//! Seconds to open a model, and to restore a saved session of some tokens in another engine.
//!
//! ```text
//! cargo run --release -p setun --features embedded-model --example start [TOKENS [MODEL [THREADS [IMAGE]]]]
//! ```
//!
//! IMAGE is where the weights are kept to be mapped; the first run writes it.

use std::{error::Error, time::Instant};

use setun::{Device, Engine, EngineConfig, Event, GenerateOptions, ModelReader};

#[expect(clippy::print_stdout, reason = "an example shows what it does")]
fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let tokens: u32 = args.next().map_or(Ok(100), |tokens| tokens.parse())?;
    let model = args.next();
    let mut config = EngineConfig::default();
    config.device.threads = args.next().map(|threads| threads.parse()).transpose()?;
    config.device.weight_image = args.next();

    let (engine, seconds) = timed(|| open(model.as_deref(), &config))?;
    let mut session = engine.session();
    session.push(vec![1])?;
    let (_, first) = timed(|| next_token(&session))?;
    println!("opened in {seconds:.3} s, {} threads; a token after {first:.3} s", engine.threads());
    if tokens == 0 {
        return Ok(());
    }

    let mut session = engine.session();
    session.push((0..tokens).map(|token| 1 + token * 7 % 4000).collect::<Vec<_>>())?;
    next_token(&session)?;
    let (bytes, seconds) = timed(|| pollster::block_on(session.save()))?;
    println!("saved in {seconds:.3} s, {} bytes", bytes.len());
    engine.close();

    let engine = open(model.as_deref(), &config)?;
    let (session, seconds) = timed(|| pollster::block_on(engine.restore(bytes)))?;
    let (cached, first) = timed(|| next_token(&session))?;
    println!("restored in {seconds:.3} s; {cached} tokens cached, the next after {first:.3} s");
    Ok(())
}

fn open(model: Option<&str>, config: &EngineConfig) -> Result<Engine, setun::Error> {
    let model = model.map_or_else(ModelReader::embedded, ModelReader::open)?;
    Engine::builder(model).config(config.clone()).device(Device::Cpu).build()
}

/// Generates a token; how many before it were in the cache.
fn next_token(session: &setun::Session) -> Result<usize, Box<dyn Error>> {
    for event in session.generate(GenerateOptions::new().max_tokens(1))?.blocking() {
        if let Event::Done(done) = event? {
            return Ok(done.usage.cached_tokens);
        }
    }
    Err("no last event".into())
}

fn timed<T, E>(work: impl FnOnce() -> Result<T, E>) -> Result<(T, f64), E> {
    let begun = Instant::now();
    let value = work()?;
    Ok((value, begun.elapsed().as_secs_f64()))
}
