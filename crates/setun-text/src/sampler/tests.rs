//! Choices, errors and draws of the sampler.

use super::*;
use crate::TokenMask;

fn sampler(options: SamplerOptions) -> Sampler {
    Sampler::new(options).expect("the options are in range")
}

fn greedy() -> SamplerOptions {
    SamplerOptions::default()
}

/// At the first token after `history`.
fn after(history: &[u32]) -> Step<'_> {
    Step::new(history, history.len(), Draw::default())
}

fn sample(options: SamplerOptions, logits: &[f32], step: &Step<'_>) -> Result<u32, TextError> {
    let mut state = SamplerState::default();
    sampler(options).sample(logits, step, &mut state).map(|choice| choice.token)
}

fn choose(options: SamplerOptions, logits: &[f32], history: &[u32]) -> u32 {
    sample(options, logits, &after(history)).expect("finite logits")
}

fn probabilities(options: SamplerOptions, logits: &[f32]) -> Vec<(u32, f64)> {
    let state = SamplerState::default();
    sampler(options).probabilities(logits, &after(&[]), &state).expect("finite")
}

#[test]
fn a_device_receives_what_a_greedy_choice_depends_on() {
    let with = |temperature, repetition_penalty| {
        let options =
            SamplerOptions { temperature, repetition_penalty, ..SamplerOptions::default() };
        sampler(options).greedy(&after(&[7, 3, 7, 1]))
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
    assert_eq!(choose(options.clone(), &[3.0, 2.0, 0.0], &[0, 0]), 1);
    assert_eq!(choose(options.clone(), &[-1.0, -1.5], &[0]), 1);
    assert_eq!(choose(options, &[3.0, 1.5], &[0]), 0, "equal after the penalty");
}

#[test]
fn names_a_logit_that_is_not_finite() {
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        for temperature in [0.0, 1.0] {
            let options = SamplerOptions { temperature, top_k: 1, ..greedy() };
            let error = sample(options, &[5.0, bad], &after(&[]));
            assert!(matches!(error, Err(TextError::LogitNotFinite { token: 1, .. })));
        }
    }
    let options = SamplerOptions { temperature: 1e-6, ..greedy() };
    let error = sample(options, &[0.0, 5e32], &after(&[]));
    assert!(matches!(error, Err(TextError::LogitNotFinite { token: 1, .. })), "it overflows");
    let error = sample(greedy(), &[], &after(&[]));
    assert!(matches!(error, Err(TextError::NoLogits)));
}

#[test]
fn names_a_token_of_the_history_without_a_logit() {
    let options = SamplerOptions { repetition_penalty: 1.1, ..greedy() };
    let error = sample(options, &[1.0, 2.0], &after(&[1, 2]));
    assert!(matches!(error, Err(TextError::TokenRange { token: 2, vocabulary: 2 })));
    let ignored = sample(greedy(), &[1.0, 2.0], &after(&[9]));
    assert_eq!(ignored.expect("no penalty, no history"), 1);
}

#[test]
fn a_very_small_temperature_is_all_but_greedy() {
    let options = SamplerOptions { temperature: 1e-6, ..greedy() };
    let found = probabilities(options, &[1.0, 2.0, 1.999]);
    assert_eq!(found, [(1, 1.0), (2, 0.0), (0, 0.0)]);
}

#[test]
fn no_share_of_the_probability_leaves_the_best_token() {
    let options = SamplerOptions { temperature: 1.0, top_p: 0.0, ..greedy() };
    let found = probabilities(options, &[1.0, 2.0, 2.0, 0.5]);
    assert_eq!(found, [(1, 1.0)]);
}

#[test]
fn a_device_makes_no_choice_that_it_cannot_make() {
    let is_argmax = |options: SamplerOptions, step: &Step<'_>| sampler(options).is_argmax(step);
    let history = [1, 2, 3];
    let at = |generated: usize| Step::new(&history, 3 - generated, Draw::default());
    let bias = || [(4, 0.5), (2, -1.0)].into();
    let penalised = SamplerOptions { repetition_penalty: 1.1, ..greedy() };
    let biased = SamplerOptions { logit_bias: bias(), ..greedy() };
    let both = SamplerOptions { logit_bias: bias(), ..penalised.clone() };
    let order = vec![SamplingStep::RepetitionPenalty, SamplingStep::LogitBias];
    let turned = SamplerOptions { order, ..both.clone() };
    assert_eq!(
        sampler(biased.clone()).greedy(&at(0)).expect("it can").biases,
        [(2, -1.0), (4, 0.5)]
    );
    assert!(sampler(biased.clone()).greedy(&at(0)).expect("it can").touched.is_empty());
    for options in [&penalised, &biased, &turned] {
        assert!(is_argmax(options.clone(), &at(0)), "{options:?}");
    }
    assert!(!is_argmax(both, &at(0)), "the bias would come before the penalty");
    let all = TokenMask::all(5);
    assert!(!is_argmax(biased.clone(), &Step { allowed: Some(&all), ..at(0) }));
    let short = SamplerOptions { min_tokens: 2, end_tokens: vec![0], ..biased };
    assert!(!is_argmax(short.clone(), &at(1)) && is_argmax(short, &at(2)));
    for options in [
        SamplerOptions { no_repeat_ngram: 3, ..greedy() },
        SamplerOptions { presence_penalty: 0.1, ..greedy() },
        SamplerOptions { banned_tokens: vec![1], ..greedy() },
        SamplerOptions { temperature: 1.0, ..greedy() },
    ] {
        assert!(!is_argmax(options.clone(), &at(0)), "{options:?}");
    }
}

#[test]
fn a_bias_and_its_lack_of_a_token() {
    let biased = |token, bias| SamplerOptions { logit_bias: [(token, bias)].into(), ..greedy() };
    assert_eq!(choose(biased(2, 1.5), &[1.0, 0.5, 0.0], &[]), 2);
    assert_eq!(choose(biased(0, -0.5), &[1.0, 0.5, 0.0], &[]), 0, "a tie goes to the lowest");
    let error = sample(biased(3, 1.0), &[1.0; 3], &after(&[])).expect_err("there is none");
    assert_eq!(error.to_string(), "logit_bias names token 3, expected an id below 3");
    let error = sample(biased(1, 3e38), &[3e38; 3], &after(&[])).expect_err("it overflows");
    assert!(matches!(error, TextError::LogitNotFinite { token: 1, .. }));
}

#[test]
fn where_nothing_is_left_an_error_says_so() {
    let banned = SamplerOptions { banned_tokens: vec![0, 1], ..greedy() };
    for options in [
        banned.clone(),
        SamplerOptions { temperature: 1.0, top_k: 3, ..banned },
        SamplerOptions { allowed_tokens: Some(vec![5]), ..greedy() },
    ] {
        let error = sample(options, &[0.0, 1.0], &after(&[])).expect_err("none is left");
        assert!(matches!(error, TextError::NoTokenLeft), "{error}");
    }
    let none = TokenMask::none(2);
    let step = Step { allowed: Some(&none), ..after(&[]) };
    assert!(matches!(sample(greedy(), &[0.0, 1.0], &step), Err(TextError::NoTokenLeft)));
}

/// Counts what is drawn, and compares by chi-square with what is promised: beyond about 4.5
/// standard deviations of the statistic it fails.
fn draws_follow(options: &SamplerOptions, logits: &[f32], promised: &[(u32, f64)]) {
    let sampler = sampler(options.clone());
    let mut counts = vec![0_u32; logits.len()];
    for index in 0..40_000 {
        let step = Step { draw: Draw { seed: 3, sequence: 0, index }, ..after(&[]) };
        let choice = sampler.sample(logits, &step, &mut SamplerState::default()).expect("finite");
        counts[choice.token as usize] += 1;
    }
    let mut statistic = 0.0;
    for &(token, probability) in promised {
        let count = f64::from(std::mem::take(&mut counts[token as usize]));
        let expected = 40_000.0 * probability;
        statistic += (count - expected).powi(2) / expected;
    }
    assert!(counts.iter().all(|&count| count == 0), "nothing else was drawn: {options:?}");
    let freedom = f64::from(u32::try_from(promised.len()).expect("few")) - 1.0;
    let most = freedom + 4.5 * (2.0 * freedom).sqrt() + 2.0;
    assert!(statistic < most, "{statistic} beyond {most}: {options:?}");
}

#[test]
fn drawn_tokens_have_the_probabilities_promised() {
    let logits = [0.1, 1.5, -0.3, 2.0, 0.9, 1.5, -1.0, 0.0];
    let warm = SamplerOptions { temperature: 0.8, ..greedy() };
    for options in [
        warm.clone(),
        SamplerOptions { top_p: 0.8, ..warm.clone() },
        SamplerOptions { top_k: 4, min_p: 0.05, ..warm.clone() },
        SamplerOptions { typical_p: 0.7, ..warm.clone() },
        SamplerOptions { epsilon_cutoff: 0.03, ..warm.clone() },
        SamplerOptions { eta_cutoff: 0.5, ..warm.clone() },
        SamplerOptions { top_n_sigma: 1.0, ..warm.clone() },
        SamplerOptions { dynamic_temperature: 0.7, ..warm.clone() },
        SamplerOptions { mirostat_tau: 1.2, ..warm.clone() },
        SamplerOptions { logit_bias: [(6, 2.0)].into(), banned_tokens: vec![3], ..warm },
    ] {
        let promised = probabilities(options.clone(), &logits);
        assert!(promised.len() > 1, "{options:?}");
        draws_follow(&options, &logits, &promised);
    }
}

/// The tokens of neighbouring draws, of one sequence and of two, are as independent as they are drawn.
#[test]
fn neighbouring_draws_are_independent() {
    let logits = [0.5_f32, 0.25, 0.125, 0.125].map(f32::ln);
    let sampler = sampler(SamplerOptions { temperature: 1.0, ..greedy() });
    let drawn = |sequence, index| {
        let step = Step { draw: Draw { seed: 5, sequence, index }, ..after(&[]) };
        let choice = sampler.sample(&logits, &step, &mut SamplerState::default());
        choice.expect("finite").token as usize
    };
    for (sequence, next) in [(0, 1), (1, 0)] {
        let mut counts = [[0_u32; 4]; 4];
        for index in 0..40_000 {
            counts[drawn(0, index)][drawn(sequence, index + next)] += 1;
        }
        let p = [0.5, 0.25, 0.125, 0.125];
        let expected = |first: usize, second: usize| 40_000.0 * p[first] * p[second];
        let pairs = (0..16).map(|pair| (pair / 4, pair % 4));
        let distance = |(first, second): (usize, usize)| {
            let expected = expected(first, second);
            (f64::from(counts[first][second]) - expected).powi(2) / expected
        };
        let statistic: f64 = pairs.map(distance).sum();
        // 15 degrees of freedom: a fair source exceeds 45 once in about 13,000 runs.
        assert!(statistic < 45.0, "{statistic}: {counts:?}");
    }
}

/// Weidmann's own example: half of the draws see the tail without the top.
#[test]
fn xtc_excludes_top_choices_with_its_probability() {
    let logits = [0.4_f32, 0.3, 0.2, 0.1].map(f32::ln);
    let with = |xtc_probability, xtc_threshold| SamplerOptions {
        temperature: 1.0,
        xtc_probability,
        xtc_threshold,
        ..greedy()
    };
    let half = [(0, 0.2), (1, 0.15), (2, 0.1 + 1.0 / 3.0), (3, 0.05 + 1.0 / 6.0)];
    draws_follow(&with(0.5, 0.15), &logits, &half);
    draws_follow(&with(1.0, 0.15), &logits, &[(2, 2.0 / 3.0), (3, 1.0 / 3.0)]);
    draws_follow(&with(1.0, 0.35), &logits, &[(0, 0.4), (1, 0.3), (2, 0.2), (3, 0.1)]);
}

/// Filters that compare with the best, or count, keep all of what they have kept.
#[test]
fn filters_leave_what_they_have_left() {
    let logits = [0.3, 2.0, 1.1, -0.5, 1.9, 0.0];
    let ids = |options, logits: &[f32]| -> Vec<u32> {
        probabilities(options, logits).into_iter().map(|(token, _)| token).collect()
    };
    for options in [
        SamplerOptions { top_k: 3, ..greedy() },
        SamplerOptions { min_p: 0.3, ..greedy() },
        SamplerOptions { epsilon_cutoff: 0.1, ..greedy() },
    ] {
        let options = SamplerOptions { temperature: 1.0, ..options };
        let once = ids(options.clone(), &logits);
        assert!(once.len() < 6, "{options:?}");
        let allowed_tokens = Some(once.clone());
        assert_eq!(ids(SamplerOptions { allowed_tokens, ..options }, &logits), once);
    }
}

#[test]
fn equal_logits_have_equal_chances_whatever_keeps_the_best() {
    for options in [
        SamplerOptions { top_k: 1, ..greedy() },
        SamplerOptions { min_p: 1.0, ..greedy() },
        SamplerOptions { typical_p: 0.1, ..greedy() },
        SamplerOptions { epsilon_cutoff: 0.9, ..greedy() },
        SamplerOptions { eta_cutoff: 0.9, ..greedy() },
        SamplerOptions { top_n_sigma: 0.5, ..greedy() },
        SamplerOptions { mirostat_tau: 5.0, ..greedy() },
        SamplerOptions { dynamic_temperature: 2.0, ..greedy() },
    ] {
        let options = SamplerOptions { temperature: 1.0, ..options };
        let found = probabilities(options.clone(), &[-3.5; 5]);
        assert_eq!(found, [0, 1, 2, 3, 4].map(|token| (token, 0.2)), "{options:?}");
        assert_eq!(probabilities(options, &[7.0]), [(0, 1.0)]);
    }
}

#[test]
fn extreme_logits_leave_numbers() {
    let logits = [3e38, -3e38, 1.0, 3e38];
    let warm = SamplerOptions { temperature: 1.5, ..greedy() };
    for options in [
        SamplerOptions { typical_p: 0.5, ..warm.clone() },
        SamplerOptions { eta_cutoff: 0.1, epsilon_cutoff: 0.1, ..warm.clone() },
        SamplerOptions { top_n_sigma: 0.1, ..warm.clone() },
        SamplerOptions { dynamic_temperature: 1.4, ..warm.clone() },
        SamplerOptions { mirostat_tau: 0.1, xtc_probability: 1.0, ..warm.clone() },
        SamplerOptions { dry_multiplier: 3e38, dry_base: 3e38, ..warm },
    ] {
        let xtc = options.xtc_probability > 0.0;
        let found = probabilities(options, &logits);
        assert!(found.iter().all(|&(_, p)| p.is_finite()));
        assert_eq!(found[0], if xtc { (3, 1.0) } else { (0, 0.5) });
    }
}

#[test]
fn a_processor_works_on_what_is_left() {
    struct Own;
    impl crate::LogitsProcessor for Own {
        fn process(&self, candidates: &mut Candidates, step: &Step<'_>) -> Result<(), TextError> {
            assert_eq!(candidates.as_slice(), [(0, 1.0), (1, 4.0), (3, 2.0)], "2 is banned");
            assert_eq!((step.history, step.generated()), (&[9, 8][..], &[8][..]));
            candidates.retain(|token, _| token != 1);
            candidates.change(|token, logit| if token == 3 { logit * 2.0 } else { logit });
            Ok(())
        }
    }
    let options = |temperature| SamplerOptions {
        temperature,
        banned_tokens: vec![2],
        logits_processors: vec![crate::SharedProcessor::new(Own)],
        ..greedy()
    };
    let step = Step::new(&[9, 8], 1, Draw::default());
    let logits = [1.0, 4.0, 9.0, 2.0];
    assert_eq!(sample(options(0.0), &logits, &step).expect("one is left"), 3);
    let state = SamplerState::default();
    let found = sampler(options(1.5)).probabilities(&logits, &step, &state).expect("two are left");
    assert!((found[0].1 - 1.0 / (1.0 + f64::exp(-2.0))).abs() < 1e-7, "{found:?}");
    assert_eq!(sampler(options(0.0)).needs(&step, 4000), Needs::All);
}

#[test]
fn a_processor_may_fail() {
    struct Own(f32);
    impl crate::LogitsProcessor for Own {
        fn process(&self, candidates: &mut Candidates, _: &Step<'_>) -> Result<(), TextError> {
            candidates.change(|_, _| self.0);
            if self.0 == 0.0 { Err(TextError::Processor { reason: "no".into() }) } else { Ok(()) }
        }
    }
    let error = |logit| {
        let logits_processors = vec![crate::SharedProcessor::new(Own(logit))];
        let found = sample(SamplerOptions { logits_processors, ..greedy() }, &[1.0], &after(&[]));
        found.expect_err("it fails").to_string()
    };
    assert!(error(0.0).ends_with("failed: no"));
    assert!(error(f32::NAN).contains("token 0 is NaN"));
    assert!(error(f32::NEG_INFINITY).contains("no token"));
}

#[test]
fn min_tokens_count_what_was_generated() {
    let options = SamplerOptions { min_tokens: 2, end_tokens: vec![1, 7], ..greedy() };
    let at = |generated: usize| Step::new(&[0, 0, 0], 3 - generated, Draw::default());
    let chosen = [0, 1, 2, 3].map(|generated| {
        sample(options.clone(), &[0.0, 1.0], &at(generated)).expect("one is left")
    });
    assert_eq!(chosen, [0, 0, 1, 1]);
}

#[test]
fn scores_of_a_search_meet_the_steps_of_single_tokens_alone() {
    let options = SamplerOptions {
        temperature: 0.1,
        top_k: 1,
        repetition_penalty: 2.0,
        logit_bias: [(3, 1.0)].into(),
        banned_tokens: vec![2],
        end_tokens: vec![0],
        min_tokens: 1,
        ..greedy()
    };
    let scores = [-1.0, -2.0, -3.0, -4.0, -5.0];
    let rescored = |options, scores: &[f32], history: &[u32]| {
        sampler(options).rescore(scores, &after(history)).expect("finite scores")
    };
    assert_eq!(rescored(options, &scores, &[1, 3]), [(1, -4.0), (3, -6.0), (4, -5.0)]);
    assert_eq!(rescored(greedy(), &scores[..2], &[1]), [(0, -1.0), (1, -2.0)]);
    let none = SamplerOptions { allowed_tokens: Some(vec![7]), ..greedy() };
    assert!(rescored(none, &scores, &[]).is_empty());
    let bad = sampler(greedy()).rescore(&[-1.0, f32::NAN], &after(&[]));
    assert!(matches!(bad, Err(TextError::LogitNotFinite { token: 1, .. })));
}
