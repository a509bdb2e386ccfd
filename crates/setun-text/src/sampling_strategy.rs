//! Sampling as a strategy.

use std::collections::BTreeMap;

use crate::{Sampler, SamplerState, Step, Strategy, TextError};

/// A [`Sampler`] that keeps the state of each sequence, by [`Draw::sequence`](crate::Draw::sequence).
/// A sequence begins anew with the token of index 0.
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
    use crate::{Draw, SamplerOptions};

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
