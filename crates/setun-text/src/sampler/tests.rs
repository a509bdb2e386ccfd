//! The sampler against its definition.

use proptest::{collection::vec, prelude::*};

use super::*;

fn sampler(options: SamplerOptions) -> Sampler {
    Sampler::new(options).expect("the options are in range")
}

fn greedy() -> SamplerOptions {
    SamplerOptions::default()
}

fn choose(options: SamplerOptions, logits: &[f32], history: &[u32]) -> u32 {
    sampler(options).sample(logits, history, Draw::default()).expect("finite logits").token
}

#[test]
fn a_device_is_told_what_a_greedy_choice_depends_on() {
    let with = |temperature, repetition_penalty| {
        let options =
            SamplerOptions { temperature, repetition_penalty, ..SamplerOptions::default() };
        Sampler::new(options).unwrap().greedy(&[7, 3, 7, 1])
    };
    let touched = |penalty| with(0.0, penalty).expect("greedy").touched;
    assert_eq!(touched(1.2), [1, 3, 7]);
    assert!(touched(1.0).is_empty());
    assert_eq!(with(0.7, 1.2), None);
}

#[test]
fn greedy_takes_the_lowest_of_equal_ids_whatever_the_filters_say() {
    let options = SamplerOptions { top_k: 1, top_p: 0.1, min_p: 1.0, ..greedy() };
    assert_eq!(choose(options, &[-1.0, 0.5, 0.5, -0.0], &[]), 1);
    assert_eq!(choose(greedy(), &[-0.0, 0.0], &[]), 0);
}

#[test]
fn greedy_obeys_the_repetition_penalty() {
    let options = SamplerOptions { repetition_penalty: 2.0, ..greedy() };
    assert_eq!(choose(options, &[3.0, 2.0, 0.0], &[0, 0]), 1);
    assert_eq!(choose(options, &[-1.0, -1.5], &[0]), 1);
    assert_eq!(choose(options, &[3.0, 1.5], &[0]), 0, "equal after the penalty");
}

#[test]
fn names_a_logit_that_is_not_finite() {
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        for temperature in [0.0, 1.0] {
            let options = SamplerOptions { temperature, top_k: 1, ..greedy() };
            let error = sampler(options).sample(&[5.0, bad], &[], Draw::default());
            assert!(matches!(error, Err(TextError::LogitNotFinite { token: 1, .. })));
        }
    }
    let options = SamplerOptions { temperature: 1e-6, ..greedy() };
    let error = sampler(options).sample(&[0.0, 5e32], &[], Draw::default());
    assert!(matches!(error, Err(TextError::LogitNotFinite { token: 1, .. })), "it overflows");
    let error = sampler(greedy()).sample(&[], &[], Draw::default());
    assert!(matches!(error, Err(TextError::NoLogits)));
}

#[test]
fn names_a_token_of_the_history_without_a_logit() {
    let options = SamplerOptions { repetition_penalty: 1.1, ..greedy() };
    let error = sampler(options).sample(&[1.0, 2.0], &[1, 2], Draw::default());
    assert!(matches!(error, Err(TextError::TokenRange { token: 2, vocabulary: 2 })));
    let ignored = sampler(greedy()).sample(&[1.0, 2.0], &[9], Draw::default());
    assert_eq!(ignored.expect("no penalty, no history").token, 1);
}

#[test]
fn a_very_small_temperature_is_all_but_greedy() {
    let options = SamplerOptions { temperature: 1e-6, ..greedy() };
    let found = sampler(options).probabilities(&[1.0, 2.0, 1.999], &[]).expect("finite");
    assert_eq!(found, [(1, 1.0), (2, 0.0), (0, 0.0)]);
}

#[test]
fn no_share_of_the_probability_leaves_the_best_token() {
    let options = SamplerOptions { temperature: 1.0, top_p: 0.0, ..greedy() };
    let found = sampler(options).probabilities(&[1.0, 2.0, 2.0, 0.5], &[]).expect("finite");
    assert_eq!(found, [(1, 1.0)]);
}

#[test]
fn drawn_tokens_have_the_probabilities_promised() {
    let options = SamplerOptions { temperature: 0.8, top_k: 4, min_p: 0.05, ..greedy() };
    let logits = [0.1, 1.5, -0.3, 2.0, 0.9, 1.5];
    let sampler = sampler(options);
    let expected = sampler.probabilities(&logits, &[]).expect("finite");
    let mut counts = [0_u32; 6];
    for index in 0..40_000 {
        let draw = Draw { seed: 3, sequence: 0, index };
        counts[sampler.sample(&logits, &[], draw).expect("finite").token as usize] += 1;
    }
    for (token, probability) in expected {
        let share = f64::from(std::mem::take(&mut counts[token as usize])) / 40_000.0;
        assert!((share - probability).abs() < 0.01, "{token}: {share}, not {probability}");
    }
    assert_eq!(counts, [0; 6], "nothing else was drawn");
}

/// A written-out form of the filters: softmax after each, by the letter of their definition.
fn by_definition(options: &SamplerOptions, logits: &[f32]) -> Vec<u32> {
    let mut left: Vec<(u32, f64)> = (0..)
        .zip(logits)
        .map(|(token, &logit)| (token, f64::from(logit / options.temperature)))
        .collect();
    left.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    if let Some(&(_, last)) = options.top_k.checked_sub(1).and_then(|index| left.get(index)) {
        left.retain(|&(_, logit)| logit >= last);
    }
    let softmax = |left: &[(u32, f64)]| -> Vec<f64> {
        let total: f64 = left.iter().map(|&(_, logit)| (logit - left[0].1).exp()).sum();
        left.iter().map(|&(_, logit)| (logit - left[0].1).exp() / total).collect()
    };
    let p = softmax(&left);
    let share = f64::from(options.top_p);
    let stays = |index: usize| index == 0 || share == 1.0 || p[..index].iter().sum::<f64>() < share;
    left = (0..left.len()).filter(|&index| stays(index)).map(|index| left[index]).collect();
    let p = softmax(&left);
    let stays = |index: usize| p[index] >= f64::from(options.min_p) * p[0];
    (0..left.len()).filter(|&index| stays(index)).map(|index| left[index].0).collect()
}

proptest! {
    #[test]
    fn keeps_what_the_definition_keeps(
        logits in vec(-8.0_f32..8.0, 1..60),
        temperature in 0.3_f32..3.0,
        top_k in 0..70_usize,
        top_p in 0.05_f32..=1.0,
        min_p in 0.0_f32..0.9,
    ) {
        let options = SamplerOptions { temperature, top_k, top_p, min_p, ..greedy() };
        let found = sampler(options).probabilities(&logits, &[]).expect("finite");
        let ids: Vec<u32> = found.iter().map(|&(token, _)| token).collect();
        prop_assert_eq!(ids, by_definition(&options, &logits));
        let total: f64 = found.iter().map(|&(_, probability)| probability).sum();
        prop_assert!((total - 1.0).abs() < 1e-12);
    }

    #[test]
    fn draws_only_survivors_and_forgets_nothing(
        logits in vec(-4.0_f32..4.0, 1..60),
        seed: u64,
        index: u64,
        top_k in 0..10_usize,
    ) {
        let sampler = sampler(SamplerOptions { temperature: 1.0, top_k, ..greedy() });
        let draw = Draw { seed, sequence: 0, index };
        let token = sampler.sample(&logits, &[], draw).expect("finite").token;
        let survivors = sampler.probabilities(&logits, &[]).expect("finite");
        prop_assert!(survivors.iter().any(|&(id, _)| id == token));
        prop_assert_eq!(sampler.sample(&logits, &[], draw).expect("finite").token, token);
    }
}
