//! A draft model against plain decoding: the same text, from fewer steps of the larger model.

use std::time::Instant;

use setun::{
    DeviceOptions, EngineError, Ragged, SamplerOptions, TokenLogits,
    speculation::{
        DraftModel, SpeculationCounts, SpeculationOptions, SpeculativeInferencer, Verify,
    },
    text::Sampler,
};

use super::{
    Args,
    report::median,
    round::speed,
    speculate::{Report, ratio},
    to_usize,
};
use crate::{error::CliError, output::Progress, source::ModelSource};

/// Measures both in turn. Their tokens are the same, or it fails.
pub(super) fn run(args: &Args, draft: &str, prompt: &[u32]) -> Result<Report, CliError> {
    let device = || -> Result<DeviceOptions, CliError> {
        let (device, threads) = (args.device.device()?, args.device.threads());
        Ok(DeviceOptions { device, threads, head: args.memory.head(), ..DeviceOptions::default() })
    };
    let draft = ModelSource::find(Some(draft), args.file.into())?.load()?.load_onto(device()?)?;
    let draft = DraftModel::new(draft.model, greedy()?);
    let inferencer = super::source(args)?.load()?.into_inferencer(device()?)?;
    let options = SpeculationOptions::default();
    let mut engine = SpeculativeInferencer::new(inferencer, Box::new(draft), options)?;
    engine.inferencer().set_logits(TokenLogits::None);
    engine.calibrate_blocking()?;
    measure(args, &mut engine, &Ragged::from_rows([prompt.to_vec()]))
}

fn measure(
    args: &Args,
    engine: &mut SpeculativeInferencer,
    query: &Ragged<u32>,
) -> Result<Report, CliError> {
    let tokens = to_usize(args.generate);
    let mut strategy = greedy()?;
    let mut progress = Progress::new();
    let (mut plain, mut guessing, mut counts) = (vec![], vec![], SpeculationCounts::default());
    for repeat in 0..=args.repeat {
        progress.show(|| format!("a draft model: {repeat} of {}", args.repeat));
        let inferencer = engine.inferencer();
        let mut cache = inferencer.cache(1)?;
        let first = inferencer.prefill_blocking(query, &mut cache, &mut strategy)?.next();
        let mut fork = inferencer.fork(&cache)?;
        let begun = Instant::now();
        let one = inferencer.decode_blocking(&first, &mut cache, tokens, &mut strategy)?;
        let one_seconds = begun.elapsed().as_secs_f64();
        let begun = Instant::now();
        let verify = Verify::Equal(&mut strategy);
        let other = engine.decode_blocking(&first, &mut fork, tokens, verify)?;
        let other_seconds = begun.elapsed().as_secs_f64();
        let (expected, found) = (one.token_ids.row(0), other.inferred.token_ids.row(0));
        if expected != found {
            let token = expected.iter().zip(found).take_while(|(a, b)| a == b).count();
            return Err(CliError::Unsteady { what: "a draft model", sequence: 0, token });
        }
        counts = other.counts;
        if repeat > 0 {
            plain.extend(speed(expected.len(), one_seconds));
            guessing.extend(speed(found.len(), other_seconds));
        }
    }
    let median = |values| median(values).ok_or(EngineError::Disposed);
    Ok(Report {
        text: "an ordinary story, with a draft model",
        tokens,
        plain_tokens_per_second: median(plain)?,
        tokens_per_second: median(guessing)?,
        accepted: ratio(counts.accepted as u64, counts.proposed as u64),
        tokens_per_verification: ratio(counts.tokens as u64, counts.verifications as u64),
    })
}

fn greedy() -> Result<Sampler, EngineError> {
    Ok(Sampler::new(SamplerOptions::default())?)
}
