//! Ways to choose a token, and the state of setun's own.

use crate::{Draw, TextError, TokenMask};

/// Chooses the next token of a sequence from the logits of its last row.
///
/// A choice should follow from the logits, the step and what was chosen before in the same
/// sequence alone: rows of several sequences come in any order, and
/// [`Draw::sequence`] distinguishes them.
pub trait Strategy {
    /// The id of the next token.
    ///
    /// # Shapes
    ///
    /// - `logits`: `[vocab]`, as the model gave them.
    ///
    /// # Errors
    ///
    /// If there is nothing to choose from: no logits, one that is not finite, or no token that
    /// is allowed.
    fn choose(&mut self, logits: &[f32], step: &Step<'_>) -> Result<u32, TextError>;
}

/// Where in a sequence a token is chosen.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    /// The ids of prompt and generated tokens, in their order.
    pub history: &'a [u32],
    /// How many of `history` are the prompt's.
    pub prompt_tokens: usize,
    /// The random numbers of this token.
    pub draw: Draw,
    /// The tokens that may be chosen; all of them if none is given.
    pub allowed: Option<&'a TokenMask>,
}

impl<'a> Step<'a> {
    /// A step at which every token is allowed.
    #[must_use]
    pub fn new(history: &'a [u32], prompt_tokens: usize, draw: Draw) -> Self {
        Self { history, prompt_tokens, draw, allowed: None }
    }

    /// The tokens after the prompt.
    #[must_use]
    pub fn generated(&self) -> &'a [u32] {
        self.history.get(self.prompt_tokens..).unwrap_or_default()
    }
}

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
