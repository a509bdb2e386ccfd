//! What a screened head leaves to be computed: survivors of each step, on a model's own texts.
//!
//! ```text
//! cargo run --release -p setun --features embedded-model --example survivors [MODEL [STEPS]]
//! ```

use std::{env, error::Error, time::Instant};

use setun::Model;
use setun_cpu::{CpuBackend, CpuOptions};
use setun_model::{
    Batch, Model as _, Outputs, PagedCache, Row, Transformer, TransformerOptions, Wants,
};
use setun_ops::best::BestRequest;

/// Sequences begin with each of so many tokens.
const SEQUENCES: u32 = 8;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let path = arguments.next();
    let steps = arguments.next().map_or(Ok(128), |steps| steps.parse())?;
    for k in [1, 48] {
        let model = match &path {
            Some(path) => Model::open(path)?,
            #[cfg(feature = "embedded-model")]
            None => Model::embedded()?,
            #[cfg(not(feature = "embedded-model"))]
            None => return Err("no MODEL, and no embedded one in this build".into()),
        };
        report(&model, k, steps)?;
    }
    Ok(())
}

/// Continues some one-token texts by the best token of each step.
#[expect(clippy::print_stdout, reason = "an example shows what it does")]
fn report(model: &Model, k: usize, steps: usize) -> Result<(), Box<dyn Error>> {
    let backend = CpuBackend::new(CpuOptions::default())?;
    let options = TransformerOptions { ranked: true, ..TransformerOptions::default() };
    let (config, weights) = (model.config().clone(), model.weights().clone());
    let begun = Instant::now();
    let mut transformer = Transformer::new(backend, config, weights, options)?;
    let loaded = begun.elapsed();
    let (mut survivors, mut full) = (vec![], 0);
    for first in 0..SEQUENCES {
        let mut cache = PagedCache::new(transformer.block_positions(), 1 << 16);
        let sequence = cache.create();
        let (mut token, mut outputs) = (100 + 7 * first, Outputs::default());
        for position in 0..steps.min(transformer.context_length()) {
            cache.extend(sequence, 1)?;
            let mut batch = Batch::default();
            let request = BestRequest { k, touched: vec![] };
            batch.push_run(sequence, position, &[token], Wants::Best(request));
            let before = transformer.backend().screening();
            pollster::block_on(transformer.forward(&batch, &mut cache, &mut outputs))?;
            let after = transformer.backend().screening();
            survivors.push(after.survivors - before.survivors);
            full += after.full_rows - before.full_rows;
            match outputs.rows().next() {
                Some(Row::Ranked([best, ..])) => token = best.token,
                _ => return Err("a row without ranked tokens".into()),
            }
        }
    }
    survivors.sort_unstable();
    let share = |hundredths: usize| survivors[(survivors.len() - 1) * hundredths / 100];
    println!(
        "{}: k {k}, {} steps: survivors median {}, 99 % {}, most {}; in full {full}; loaded in {loaded:.1?}",
        model.name(),
        survivors.len(),
        share(50),
        share(99),
        share(100),
    );
    Ok(())
}
