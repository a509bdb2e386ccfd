//! Draws from a nucleus of which few tokens are listed.

use proptest::{collection::vec, prelude::*};

use super::{asked_at, at, both_ways, greedy, logits, peaked, states};
use crate::{Sampler, SamplerOptions, Step, TokenMask, sampler::ranked::TOP_P_TOKENS};

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
            let is_listed = place < TOP_P_TOKENS && tokens[place].1 > tokens[TOP_P_TOKENS - 1].1 * (1.0 + 1e-6);
            let limit = f64::from(top_p) * sum(TOP_P_TOKENS.min(tokens.len())) * (1.0 - 1e-5);
            prop_assert!(!is_listed || sum(place) >= limit, "place {}, {} of {}", place, sum(place), limit);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A mask of many tokens, which is known when logits are requested or not before the choice.
    #[test]
    fn draws_under_a_mask_are_the_same(
        logits in peaked().prop_map(|logits| logits.repeat(65)),
        forbidden in vec(0..17_000_usize, 0..1500),
        best in 0..40_usize,
        penalty in prop_oneof![Just(1.0_f32), 0.3_f32..3.0],
        temperature in 0.1_f32..4.0,
        top_p in 0.3_f32..1.0,
        index: u64,
    ) {
        let mask = mask_without(&logits, best, &forbidden);
        let unmasked = at(&[5, 9, 5], index);
        let step = Step { allowed: Some(&mask), ..unmasked };
        let options = SamplerOptions { temperature, top_p, repetition_penalty: penalty, ..greedy() };
        for asked in [&step, &unmasked] {
            let (all, ranked) = asked_at(options.clone(), &logits, (asked, &step));
            if let Some(ranked) = ranked {
                prop_assert_eq!(ranked, all);
            }
        }
    }
}

/// Every token but these, and but some with the highest logits.
fn mask_without(logits: &[f32], best: usize, forbidden: &[usize]) -> TokenMask {
    let mut ids: Vec<usize> = (0..logits.len()).collect();
    ids.sort_by(|&a, &b| logits[b].total_cmp(&logits[a]));
    let mut is_allowed = vec![true; logits.len()];
    let forbidden = forbidden.iter().filter(|&&index| index < logits.len());
    ids[..best].iter().chain(forbidden).for_each(|&index| is_allowed[index] = false);
    let mut mask = TokenMask::none(logits.len());
    (0..).zip(is_allowed).filter(|&(_, is)| is).for_each(|(token, _)| mask.insert(token));
    mask
}

#[test]
fn a_mask_of_many_tokens_needs_few_logits() {
    const TOKENS: u16 = 16_400;
    let place = |token: u16| token % 4000 * 7 % 4000 + token / 4000 * 4000;
    let logits: Vec<f32> = (0..TOKENS).map(|token| -f32::from(place(token)) / 4.0).collect();
    let options = SamplerOptions { temperature: 1.5, top_p: 0.9, ..greedy() };
    // Of the best tokens every second one.
    let is_forbidden = |&token: &u16| place(token) < 40 && place(token) % 2 == 1;
    let forbidden: Vec<_> = (0..TOKENS).filter(is_forbidden).map(usize::from).collect();
    let mask = mask_without(&logits, 0, &forbidden);
    let decided = (0..200).filter(|&index| {
        let step = Step { allowed: Some(&mask), ..at(&[], index) };
        let (all, ranked) = both_ways(options.clone(), &logits, &step);
        ranked.is_some_and(|ranked| ranked == all)
    });
    let decided = decided.count();
    assert!(decided > 150, "{decided} of 200");
}
