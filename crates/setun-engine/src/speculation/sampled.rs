//! Draws of a sampler for speculation, which must keep no state: what is drawn for a proposal that
//! does not stay must leave no trace.

use setun_text::{Sampler, SamplerState, Step, TextError};

/// The token that it chooses.
pub(super) fn sample(sampler: &Sampler, logits: &[f32], step: &Step<'_>) -> Result<u32, TextError> {
    if sampler.has_state() {
        return Err(TextError::NeedsState { option: "mirostat_tau" });
    }
    Ok(sampler.sample(logits, step, &mut SamplerState::default())?.token)
}
