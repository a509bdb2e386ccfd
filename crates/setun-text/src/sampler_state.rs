//! The state of a sampler between tokens.

/// What one sequence's choices have left for the next. A fork clones it; tokens that are only
/// run through the model again do not change it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SamplerState {
    max_surprise: Option<f64>,
}

impl SamplerState {
    /// Mirostat's μ in bits, before the first token twice the target.
    pub(crate) fn max_surprise(&self, target: f64) -> f64 {
        self.max_surprise.unwrap_or(2.0 * target)
    }

    /// Follows a token of that surprise in bits: *μ − η(S − τ)*.
    pub(crate) fn surprised(&mut self, surprise: f64, target: f64, rate: f64) {
        self.max_surprise = Some(self.max_surprise(target) - rate * (surprise - target));
    }
}
