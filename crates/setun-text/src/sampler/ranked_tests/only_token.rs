//! The choice where one token alone is allowed.

use super::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    /// Whatever the logits are, and the state stays as it was.
    #[test]
    fn a_token_that_is_known_without_logits_is_the_choice(
        options in options(),
        logits in prop_oneof![logits(), peaked()],
        history in vec(0..12_u32, 0..16),
        token in prop_oneof![0..12_u32, 0..300_u32],
        index: u64,
    ) {
        let mut mask = TokenMask::none(logits.len());
        mask.insert(token);
        let step = Step { allowed: Some(&mask), ..at(&history, index) };
        let sampler = Sampler::new(options).expect("in range");
        if mask.contains(token) && sampler.takes_only(token, &step) {
            let before = states()[usize::from(index.is_multiple_of(2))];
            let mut state = before;
            let choice = sampler.sample(&logits, &step, &mut state).map_err(|e| e.to_string());
            prop_assert_eq!((choice, state), (Ok(Choice { token }), before));
        }
    }
}

#[test]
fn a_token_is_known_without_logits_unless_a_step_may_refuse_it() {
    let step = at(&[1, 2, 1], 0);
    let knows = |options| Sampler::new(options).expect("in range").takes_only(2, &step);
    let warm = SamplerOptions { temperature: 0.9, ..greedy() };
    for options in [
        greedy(),
        warm.clone(),
        SamplerOptions { top_k: 8, top_p: 0.9, min_p: 0.1, ..warm.clone() },
        SamplerOptions { repetition_penalty: 1.2, logit_bias: [(2, -9.0)].into(), ..warm.clone() },
        SamplerOptions { no_repeat_ngram: 3, ..greedy() },
    ] {
        assert!(knows(options.clone()), "{options:?}");
    }
    for options in [
        SamplerOptions { no_repeat_ngram: 2, ..greedy() },
        SamplerOptions { banned_tokens: vec![2], ..greedy() },
        SamplerOptions { allowed_tokens: Some(vec![3]), ..greedy() },
        SamplerOptions { min_tokens: 9, end_tokens: vec![2], ..greedy() },
        SamplerOptions { mirostat_tau: 2.0, ..warm },
    ] {
        assert!(!knows(options.clone()), "{options:?}");
    }
}
