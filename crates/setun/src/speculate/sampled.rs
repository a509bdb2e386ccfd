//! What speculation asks of a sampler.

use setun_text::{Sampler, Step, TextError};

/// The token that it chooses.
pub(crate) fn sample(sampler: &Sampler, logits: &[f32], step: &Step<'_>) -> Result<u32, TextError> {
    Ok(sampler.sample(logits, step.history, step.draw)?.token)
}

/// What it draws that token from.
pub(crate) fn probabilities(
    sampler: &Sampler,
    logits: &[f32],
    step: &Step<'_>,
) -> Result<Vec<(u32, f64)>, TextError> {
    sampler.probabilities(logits, step.history)
}
