//! Sampling as a strategy.

use crate::{Sampler, Step, Strategy, TextError};

impl Strategy for Sampler {
    fn choose(&mut self, logits: &[f32], step: &Step<'_>) -> Result<u32, TextError> {
        Ok(self.sample(logits, step.history, step.draw)?.token)
    }
}
