//! Time of a layer on a device that does not have the model yet.

use std::time::Duration;

use setun_model::sample::{self, Timed};
use setun_ops::{Backend, BufferId, CacheSpec, HAS_RECURRENT, OpsError, top_logits::Ranked};
use web_time::Instant;

use crate::header::ModelHeader;

/// Steps that are timed together: a device that has received several does not wait between them.
const STEPS: usize = 8;

/// Rounds of them; the best counts, as others only lose time.
const ROUNDS: usize = 3;

/// What a backend takes for one layer of a model and one token: a few steps over layers as large
/// as the model's own, of random weights.
pub(super) async fn layer_time<B: Backend>(
    backend: &mut B,
    header: &ModelHeader,
    cache: CacheSpec,
) -> Result<Duration, OpsError> {
    let ModelHeader { config, layout, kinds, .. } = header;
    let Timed { case, output, layers } = sample::timed(layout, kinds, config.activation, cache)?;
    let weights = case.upload(backend)?;
    let mut step = backend.prepare(&case.plan, &weights)?;
    let mut cache = backend.create_cache(case.plan.cache(), case.blocks)?;
    if HAS_RECURRENT {
        backend.grow_states(&mut cache, case.states())?;
    }
    let mut best = Duration::MAX;
    for round in 0..=ROUNDS {
        let begun = Instant::now();
        for inputs in case.steps.iter().take(STEPS) {
            backend.run(&mut step, &mut cache, inputs)?;
        }
        wait(backend, &step, output, &case.plan).await?;
        // The first round pays for what is made on first use.
        if round > 0 {
            best = best.min(begun.elapsed());
        }
    }
    Ok(best / u32::try_from(STEPS.min(case.steps.len()) * layers).unwrap_or(u32::MAX))
}

/// Reads what the last step gave, which is there once all steps are done.
async fn wait<B: Backend>(
    backend: &mut B,
    step: &B::Prepared,
    output: BufferId,
    plan: &setun_ops::Plan,
) -> Result<(), OpsError> {
    let mut ranked = vec![0; plan.buffer(output).width * size_of::<Ranked>()];
    backend.read(step, output, 0..1, &mut ranked).await
}
