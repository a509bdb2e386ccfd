//! oxbitnet with the arguments and the output of `llama-bench`, so that `setun bench --peer
//! oxbitnet=PROGRAM --peer-model FILE` measures it in turn with setun.
//!
//! Its crate's public calls are used as its own generation uses them: `forward`, then the whole
//! row of logits is read. The choice is greedy.

use std::{env, sync::Arc, time::Instant};

use anyhow::{Context, Result};
use oxbitnet::{
    LoadOptions, gpu::device::init_gpu, model::loader::load_model, nn::model::BitNetModel,
};
use serde_json::json;

/// Positions that its cache has room for.
const POSITIONS: usize = 4096;
/// Tokens that are generated to warm up, after the whole prompt.
const WARM_UP: usize = 2;

fn main() -> Result<()> {
    tokio::runtime::Builder::new_current_thread().build()?.block_on(run())
}

async fn run() -> Result<()> {
    let (prompt, generate): (u32, usize) = (value("-p")?.parse()?, value("-n")?.parse()?);
    let gpu = init_gpu().await?;
    let (device, queue) = (Arc::clone(&gpu.device), Arc::clone(&gpu.queue));
    let loaded = load_model(&value("-m")?, device, queue, LoadOptions::default()).await?;
    let (device, queue) = (Arc::clone(&gpu.device), Arc::clone(&gpu.queue));
    let mut model = BitNetModel::build(device, queue, loaded.config, &loaded.weights, POSITIONS)?;
    let prompt: Vec<u32> = (0..prompt).map(|index| index * 37 % 1000).collect();
    measure(&mut model, &prompt, WARM_UP).await?;
    let (prefill, decode) = measure(&mut model, &prompt, generate).await?;
    println!(
        "{}",
        json!([
            { "n_prompt": prompt.len(), "n_gen": 0, "avg_ts": prefill },
            { "n_prompt": 0, "n_gen": generate, "avg_ts": decode },
        ])
    );
    Ok(())
}

/// Tokens a second of the prompt, and of what is generated after it.
async fn measure(model: &mut BitNetModel, prompt: &[u32], generate: usize) -> Result<(f64, f64)> {
    model.reset_kv_cache();
    let begun = Instant::now();
    let logits = model.forward(prompt);
    let mut row = model.read_logits(&logits).await?;
    let prefill = prompt.len() as f64 / begun.elapsed().as_secs_f64();
    let begun = Instant::now();
    for _ in 0..generate {
        let best = row.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
        let (token, _) = best.context("a row of logits is empty")?;
        let logits = model.forward(&[u32::try_from(token)?]);
        row = model.read_logits(&logits).await?;
    }
    Ok((prefill, generate as f64 / begun.elapsed().as_secs_f64()))
}

/// What follows a flag.
fn value(flag: &str) -> Result<String> {
    let mut arguments = env::args().skip_while(|argument| argument != flag).skip(1);
    arguments.next().with_context(|| format!("{flag} and its value are missing"))
}
