//! Choices from ranked logits are those from all logits.

use proptest::{collection::vec, prelude::*};

use super::*;

/// What a model gives for [`Needs::Best`].
fn ranked(logits: &[f32], k: usize, within: Option<f32>, touched: &[u32]) -> Vec<(u32, f32)> {
    let all: Vec<(u32, f32)> = (0..).zip(logits.iter().copied()).collect();
    let (mut found, mut others): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|(token, _)| touched.contains(token));
    others.sort_by(|a, b| (b.1 + 0.0).total_cmp(&(a.1 + 0.0)).then(a.0.cmp(&b.0)));
    let least = within.map_or(f32::NEG_INFINITY, |within| others[0].1 - within);
    found.extend(others[..k].iter().filter(|&&(_, logit)| logit >= least));
    found
}

/// Both ways to the next token. None where the ranked one does not tell, or is not taken.
fn both_ways(
    options: SamplerOptions,
    logits: &[f32],
    history: &[u32],
    index: u64,
) -> (Result<u32, String>, Option<Result<u32, String>>) {
    let sampler = Sampler::new(options).expect("the options are in range");
    let draw = Draw { seed: 11, sequence: 0, index };
    let token = |choice: Choice| choice.token;
    let all = sampler.sample(logits, history, draw).map(token).map_err(|e| e.to_string());
    let Needs::Best { k, within, touched } = sampler.needs(history, logits.len()) else {
        return (all, None);
    };
    let found = sampler.sample_ranked(&ranked(logits, k, within, &touched), history, draw);
    let found = found.map(|choice| choice.map(token)).map_err(|e| e.to_string());
    (all, found.transpose())
}

fn greedy() -> SamplerOptions {
    SamplerOptions::default()
}

/// Few values, so that many tie; both zeros; and values that a temperature merges.
fn logits() -> impl Strategy<Value = Vec<f32>> {
    let tied = (-3_i8..4).prop_map(|x| if x == 0 { -0.0 } else { f32::from(x) });
    let close = (0_u32..40).prop_map(|x| f32::from_bits(3.0_f32.to_bits() + x));
    let all = prop_oneof![tied.clone(), -8.0_f32..8.0];
    prop_oneof![vec(tied, 100..300), vec(close, 100..300), vec(all, 100..300)]
}

proptest! {
    #[test]
    fn greedy_choices_are_the_same(
        logits in logits(),
        history in vec(0..100_u32, 0..30),
        penalty in prop_oneof![Just(1.0_f32), 0.3_f32..3.0],
    ) {
        let options = SamplerOptions { repetition_penalty: penalty, ..greedy() };
        let (all, ranked) = both_ways(options, &logits, &history, 0);
        if penalty == 1.0 || history.len() < 20 {
            prop_assert_eq!(ranked, Some(all));
        } else if ranked.is_some() {
            prop_assert_eq!(ranked, Some(all));
        }
    }

    #[test]
    fn draws_are_the_same(
        logits in logits(),
        history in vec(0..100_u32, 0..8),
        penalty in prop_oneof![Just(1.0_f32), 0.3_f32..3.0],
        temperature in 0.2_f32..4.0,
        top_k in 1..9_usize,
        top_p in 0.3_f32..=1.0,
        min_p in prop_oneof![Just(0.0_f32), 0.0_f32..0.5],
        index: u64,
    ) {
        let options = SamplerOptions { temperature, top_k, top_p, min_p, repetition_penalty: penalty };
        let (all, ranked) = both_ways(options, &logits, &history, index);
        if let Some(ranked) = ranked {
            prop_assert_eq!(ranked, all);
        } else {
            // Only ties keep the best logits from telling.
            let cut = Sampler::new(options).expect("in range").probabilities(&logits, &history);
            let no_filter = top_p == 1.0 && min_p == 0.0;
            prop_assert!(!no_filter || cut.expect("finite").len() > top_k);
        }
    }
}

/// As those of a text: most are far below the best.
fn peaked() -> impl Strategy<Value = Vec<f32>> {
    let rare = prop_oneof![9 => -20.0_f32..-10.0, 1 => -10.0_f32..5.0];
    prop_oneof![vec(rare, 260..500), vec(-8.0_f32..8.0, 260..500)]
}

proptest! {
    #[test]
    fn draws_by_min_p_alone_are_the_same(
        logits in peaked(),
        history in vec(0..260_u32, 0..3),
        penalty in prop_oneof![Just(1.0_f32), 0.3_f32..3.0],
        temperature in prop_oneof![0.1_f32..4.0, Just(crate::LEAST_TEMPERATURE), Just(1e20)],
        min_p in prop_oneof![1e-6_f32..1.0, Just(1.0), Just(f32::MIN_POSITIVE)],
        index: u64,
    ) {
        let options =
            SamplerOptions { temperature, min_p, repetition_penalty: penalty, ..greedy() };
        let (all, ranked) = both_ways(options, &logits, &history, index);
        if let Some(ranked) = ranked {
            prop_assert_eq!(ranked, all);
        } else if penalty == 1.0 && (0.1..4.0).contains(&temperature) {
            // Only many survivors keep the best logits from telling.
            let left = Sampler::new(SamplerOptions { min_p: 0.97 * min_p, ..options });
            let left = left.expect("in range").probabilities(&logits, &history).expect("finite");
            prop_assert!(left.len() >= MIN_P_TOKENS, "{} are left", left.len());
        }
    }
}

#[test]
fn distinct_logits_always_tell() {
    let logits: Vec<f32> = (0..400_u16).map(|x| f32::from(x * 37 % 400) / 16.0).collect();
    for index in 0..50 {
        let options = SamplerOptions { temperature: 0.9, top_k: 40, ..greedy() };
        let (all, ranked) = both_ways(options, &logits, &[], index);
        assert_eq!(ranked, Some(all));
    }
}

#[test]
fn errors_are_the_same() {
    let mut logits = vec![0.5; 100];
    logits[3] = 1e30;
    let options = SamplerOptions { repetition_penalty: 1e-20, ..greedy() };
    let (all, ranked) = both_ways(options, &logits, &[9, 3, 3], 0);
    assert!(all.as_ref().is_err_and(|error| error.contains("token 3")), "{all:?}");
    assert_eq!(ranked, Some(all));
}

#[test]
fn all_logits_are_needed_where_the_best_do_not_tell() {
    let needs = |options: SamplerOptions, history: &[u32]| {
        Sampler::new(options).expect("in range").needs(history, 100)
    };
    let sampled = SamplerOptions { temperature: 1.0, ..greedy() };
    assert_eq!(needs(sampled, &[]), Needs::All);
    assert_eq!(needs(SamplerOptions { top_k: 18, ..sampled }, &[]), Needs::All, "too many");
    let coldest = SamplerOptions { temperature: crate::LEAST_TEMPERATURE, ..sampled };
    assert!((2_f32.powi(64) / coldest.temperature).is_finite(), "no logit overflows");
    let penalty = SamplerOptions { repetition_penalty: 1.1, ..greedy() };
    assert_eq!(needs(penalty, &[4, 2, 4]), Needs::Best { k: 1, within: None, touched: vec![2, 4] });
    assert_eq!(needs(penalty, &[4, 100]), Needs::All, "the error is for all logits to tell");
    let top_k = SamplerOptions { top_k: 5, ..sampled };
    assert_eq!(needs(top_k, &[4]), Needs::Best { k: 13, within: None, touched: vec![] });
    let sampler = Sampler::new(top_k).expect("in range");
    assert_eq!(sampler.sample_ranked(&[], &[], Draw::default()).expect("no error"), None);
}
