//! Ways to choose a token that are not setun's own.

use crate::{Draw, TextError, TokenMask};

/// Chooses the next token of a sequence from the logits of its last row.
///
/// A choice should follow from the logits, the step and what was chosen before in the same
/// sequence alone: rows of several sequences come in any order, and
/// [`Draw::sequence`] tells them apart.
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
