//! Draws of a sampler for speculation, which must keep no state: what is drawn for a proposal that
//! does not stay must leave no trace.

use setun_text::{Sampler, SamplerState, Step, TextError};

/// The token that it chooses.
pub(crate) fn sample(sampler: &Sampler, logits: &[f32], step: &Step<'_>) -> Result<u32, TextError> {
    Ok(sampler.sample(logits, step, &mut no_state(sampler)?)?.token)
}

/// What it draws that token from.
pub(crate) fn probabilities(
    sampler: &Sampler,
    logits: &[f32],
    step: &Step<'_>,
) -> Result<Vec<(u32, f64)>, TextError> {
    sampler.probabilities(logits, step, &no_state(sampler)?)
}

fn no_state(sampler: &Sampler) -> Result<SamplerState, TextError> {
    if sampler.has_state() {
        return Err(TextError::NeedsState { option: "mirostat_tau" });
    }
    Ok(SamplerState::default())
}
