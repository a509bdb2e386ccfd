//! Cost and gain of the head's and the cache's formats, and of packing float weights.
//!
//! ```text
//! cargo run --release -p setun --features embedded-model --example optimize [MODEL [MASTER]]
//! ```

use std::{error::Error, fs, path::Path, time::Instant};

use setun::{CacheType, Engine, GenerateOptions, HeadType, Model};

/// A small one with random weights.
const MASTER: &str = "../../tests/fixtures/golden/llama-bitlinear/master";

const TOKENS: u32 = 100;

#[expect(clippy::print_stdout, reason = "an example shows what it does")]
fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let model = arguments.next();
    println!("head, cache: kB of head, screen and cache; tokens/s");
    let mut texts = vec![];
    for (head, cache) in [
        (HeadType::Stored, CacheType::F32),
        (HeadType::Stored, CacheType::F16),
        (HeadType::Screened, CacheType::F16), // less to read, the same choices
        (HeadType::Int8, CacheType::F16),     // less to read, slightly other logits
        (HeadType::Int8, CacheType::Int8),
    ] {
        let model = model.as_ref().map_or_else(Model::embedded, Model::open)?;
        let engine = Engine::builder(model).head_type(head).cache_type(cache).build()?;
        let prompt: Vec<u32> = (1..=20).collect();
        let options = || GenerateOptions::new().temperature(0.0);
        engine.complete(prompt.clone(), options().max_tokens(8))?; // makes steps ready
        let begun = Instant::now();
        let text = engine.complete(prompt, options().max_tokens(TOKENS as usize))?;
        let speed = f64::from(TOKENS) / begun.elapsed().as_secs_f64();
        let memory = pollster::block_on(engine.memory())?;
        let [kept, screen, cached] =
            [memory.head, memory.screen, memory.cache].map(|bytes| bytes / 1000);
        println!("{}, {cache:?}: {kept}, {screen}, {cached}; {speed:.0}", head.name());
        texts.push(text.tokens);
    }
    if texts[1] != texts[2] {
        return Err("the screened head has chosen otherwise".into());
    }
    println!("the screened head chose the same {} tokens", texts[2].len());

    // Floats are quantised while they are read; `setun convert` does so once for all.
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join(MASTER);
    let master = arguments.next().map_or(fixture, Into::into);
    let bytes = fs::metadata(master.join("model.safetensors"))?.len();
    let begun = Instant::now();
    let engine = Engine::builder(Model::open(master)?).build()?;
    let milliseconds = begun.elapsed().as_secs_f64() * 1e3;
    let (before, after) = (bytes / 1000, engine.weight_bytes() / 1000);
    println!("a master: {before} kB of floats, {after} kB in memory after {milliseconds:.1} ms");
    Ok(())
}
