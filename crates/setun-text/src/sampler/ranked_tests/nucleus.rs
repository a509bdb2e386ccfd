//! Draws from a nucleus of which few tokens are listed.

use proptest::{collection::vec, prelude::*};

use super::{at, both_ways, greedy, logits, peaked, states};
use crate::{Sampler, SamplerOptions, sampler::ranked::SHARE_TOKENS};

proptest! {
    /// The nucleus of tokens that are listed is part of that of all. What is drawn of all decides if it is in it.
    #[test]
    fn draws_by_top_p_alone_are_the_same(
        logits in prop_oneof![peaked(), logits().prop_map(|logits| logits.repeat(3))],
        history in vec(0..260_u32, 0..3),
        penalty in prop_oneof![Just(1.0_f32), 0.3_f32..3.0],
        temperature in prop_oneof![0.1_f32..4.0, Just(crate::MIN_TEMPERATURE), Just(1e20)],
        top_p in prop_oneof![0.3_f32..1.0, Just(f32::MIN_POSITIVE)],
        index: u64,
    ) {
        let step = at(&history, index);
        let options = SamplerOptions { temperature, top_p, repetition_penalty: penalty, ..greedy() };
        let (all, ranked) = both_ways(options.clone(), &logits, &step);
        if let Some(ranked) = ranked {
            prop_assert_eq!(ranked, all);
        } else if penalty == 1.0 {
            let whole = Sampler::new(SamplerOptions { top_p: 1.0, ..options }).expect("in range");
            let [state, _] = states();
            let (drawn, _) = both_ways(whole.options().clone(), &logits, &step).0;
            let tokens = whole.probabilities(&logits, &step, &state).expect("finite");
            let place = tokens.iter().position(|&(token, _)| Ok(token) == drawn).expect("a token");
            let sum = |count: usize| tokens[..count].iter().map(|(_, p)| p).sum::<f64>();
            let is_listed = place < SHARE_TOKENS && tokens[place].1 > tokens[SHARE_TOKENS - 1].1 * (1.0 + 1e-6);
            let limit = f64::from(top_p) * sum(SHARE_TOKENS.min(tokens.len())) * (1.0 - 1e-5);
            prop_assert!(!is_listed || sum(place) >= limit, "place {}, {} of {}", place, sum(place), limit);
        }
    }
}
