//! Ways to choose a token, of which a [`Sampler`] with its states is one.

use std::collections::BTreeMap;

use crate::{Draw, Sampler, TextError, TokenMask};

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

/// A [`Sampler`] that keeps the state of each sequence, which [`Draw::sequence`] distinguishes. A
/// sequence begins anew with the token of index 0.
#[derive(Clone, Debug)]
pub struct SamplingStrategy {
    sampler: Sampler,
    states: BTreeMap<u64, SamplerState>,
}

impl SamplingStrategy {
    /// With no sequence yet.
    #[must_use]
    pub fn new(sampler: Sampler) -> Self {
        Self { sampler, states: BTreeMap::new() }
    }
}

impl Strategy for SamplingStrategy {
    fn choose(&mut self, logits: &[f32], step: &Step<'_>) -> Result<u32, TextError> {
        if !self.sampler.has_state() {
            return Strategy::choose(&mut self.sampler, logits, step);
        }
        let state = self.states.entry(step.draw.sequence).or_default();
        if step.draw.index == 0 {
            *state = SamplerState::default();
        }
        Ok(self.sampler.sample(logits, step, state)?.token)
    }
}

/// Without a state: mirostat is refused.
impl Strategy for Sampler {
    fn choose(&mut self, logits: &[f32], step: &Step<'_>) -> Result<u32, TextError> {
        if self.has_state() {
            return Err(TextError::NeedsState { option: "mirostat_tau" });
        }
        Ok(self.sample(logits, step, &mut SamplerState::default())?.token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SamplerOptions;

    const LOGITS: [f32; 5] = [1.0, 0.5, 0.2, -0.1, -3.0];

    fn at(sequence: u64, index: u64) -> Step<'static> {
        Step::new(&[], 0, Draw { seed: 4, sequence, index })
    }

    fn sampler(mirostat_tau: f32) -> Sampler {
        let options = SamplerOptions { temperature: 1.0, mirostat_tau, ..Default::default() };
        Sampler::new(options).expect("in range")
    }

    #[test]
    fn sequences_do_not_disturb_each_other() {
        let mut both = SamplingStrategy::new(sampler(1.0));
        let mut mixed = [vec![], vec![]];
        for index in 0..40 {
            for sequence in 0..2 {
                let token = both.choose(&LOGITS, &at(sequence, index)).expect("finite");
                mixed[usize::try_from(sequence).expect("0 or 1")].push(token);
            }
        }
        for (sequence, mixed) in (0..).zip(mixed) {
            let mut state = SamplerState::default();
            let alone = (0..40).map(|index| {
                let step = at(sequence, index);
                sampler(1.0).sample(&LOGITS, &step, &mut state).expect("finite").token
            });
            assert_eq!(alone.collect::<Vec<_>>(), mixed);
            let again = both.choose(&LOGITS, &at(sequence, 0)).expect("finite");
            assert_eq!(again, mixed[0], "it begins anew");
        }
    }

    #[test]
    fn a_sampler_alone_is_a_strategy_where_it_has_no_state() {
        let step = at(0, 3);
        let expected = sampler(0.0).sample(&LOGITS, &step, &mut SamplerState::default());
        let found = Strategy::choose(&mut sampler(0.0), &LOGITS, &step);
        assert_eq!(found.expect("finite"), expected.expect("finite").token);
        let error = Strategy::choose(&mut sampler(1.0), &LOGITS, &step).expect_err("a state");
        assert!(error.to_string().contains("`mirostat_tau`"), "{error}");
    }
}
