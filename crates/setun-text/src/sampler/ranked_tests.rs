//! Choices from ranked logits are those from all logits.

use proptest::{collection::vec, prelude::*};

use self::row::{bound, ranked};
use super::{ranked::MIN_P_TOKENS, *};
use crate::TokenMask;

mod filters;
mod nucleus;
mod only_token;
mod row;

/// Both ways to the next token, and the states that they leave. None where the ranked one does
/// not decide, or is not taken.
type Chosen = (Result<u32, String>, SamplerState);

fn both_ways(options: SamplerOptions, logits: &[f32], step: &Step<'_>) -> (Chosen, Option<Chosen>) {
    asked_at(options, logits, (step, step))
}

/// The same where logits were requested at a step that may have allowed more.
fn asked_at(
    options: SamplerOptions,
    logits: &[f32],
    (asked, step): (&Step<'_>, &Step<'_>),
) -> (Chosen, Option<Chosen>) {
    let sampler = Sampler::new(options).expect("the options are in range");
    let token = |choice: Choice| choice.token;
    let before = states()[usize::from(step.draw.index.is_multiple_of(2))];
    let mut state = before;
    let all = sampler.sample(logits, step, &mut state).map(token).map_err(|e| e.to_string());
    let all = (all, state);
    let Needs::TopLogits { k, within, noise, top, sum, touched } =
        sampler.needs(asked, logits.len())
    else {
        return (all, None);
    };
    assert!(touched.is_sorted() && k + top + touched.len() <= logits.len() / 4);
    let mut state = before;
    let mut given = ranked(logits, [k, top], (within, noise), &touched);
    given.extend(sum.then(|| bound(logits, noise, &touched, step.draw.index)));
    let found = sampler.sample_ranked(&given, step, &mut state);
    let found = found.map(|choice| choice.map(token)).map_err(|e| e.to_string()).transpose();
    assert!(found.is_some() || state == before);
    (all, found.map(|found| (found, state)))
}

/// At first, and after a token.
fn states() -> [SamplerState; 2] {
    let mut later = SamplerState::default();
    later.surprised(3.0, 2.0, 0.5);
    [SamplerState::default(), later]
}

fn at(history: &[u32], index: u64) -> Step<'_> {
    Step::new(history, history.len() / 2, Draw { seed: 11, sequence: 0, index })
}

fn greedy() -> SamplerOptions {
    SamplerOptions::default()
}

/// Few values, so that many tie; both zeros; and values that a temperature merges.
fn logits() -> impl proptest::strategy::Strategy<Value = Vec<f32>> {
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
        let (all, ranked) = both_ways(options, &logits, &at(&history, 0));
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
        let repetition_penalty = penalty;
        let options =
            SamplerOptions { temperature, top_k, top_p, min_p, repetition_penalty, ..greedy() };
        let (all, ranked) = both_ways(options.clone(), &logits, &at(&history, index));
        if let Some(ranked) = ranked {
            prop_assert_eq!(ranked, all);
        } else {
            // Only ties keep the best logits from deciding.
            let sampler = Sampler::new(options).expect("in range");
            let cut = sampler.probabilities(&logits, &at(&history, index), &states()[0]);
            let no_filter = top_p == 1.0 && min_p == 0.0;
            prop_assert!(!no_filter || cut.expect("finite").len() > top_k);
        }
    }
}

/// As those of a text: most are far below the best.
fn peaked() -> impl proptest::strategy::Strategy<Value = Vec<f32>> {
    let rare = prop_oneof![9 => -20.0_f32..-10.0, 1 => -10.0_f32..5.0];
    prop_oneof![vec(rare, 260..500), vec(-8.0_f32..8.0, 260..500)]
}

proptest! {
    #[test]
    fn draws_by_min_p_alone_are_the_same(
        logits in peaked(),
        history in vec(0..260_u32, 0..3),
        penalty in prop_oneof![Just(1.0_f32), 0.3_f32..3.0],
        temperature in prop_oneof![0.1_f32..4.0, Just(crate::MIN_TEMPERATURE), Just(1e20)],
        min_p in prop_oneof![1e-6_f32..1.0, Just(1.0), Just(f32::MIN_POSITIVE)],
        index: u64,
    ) {
        let options =
            SamplerOptions { temperature, min_p, repetition_penalty: penalty, ..greedy() };
        let (all, ranked) = both_ways(options.clone(), &logits, &at(&history, index));
        if let Some(ranked) = ranked {
            prop_assert_eq!(ranked, all);
        } else if penalty == 1.0 && (0.1..4.0).contains(&temperature) {
            // Only many candidates keep the best logits from deciding.
            let left = Sampler::new(SamplerOptions { min_p: 0.97 * min_p, ..options });
            let left = left.expect("in range").probabilities(&logits, &at(&history, index), &states()[0]);
            let left = left.expect("finite");
            prop_assert!(left.len() >= MIN_P_TOKENS, "{} are left", left.len());
        }
    }
}

proptest! {
    /// Whatever ties, and whatever the steps before the draw change or drop.
    #[test]
    fn draws_of_all_tokens_are_the_same_and_always_decided(
        logits in prop_oneof![logits(), peaked(), vec(Just(1.8e19_f32), 100..200)],
        history in vec(0..100_u32, 0..8),
        penalty in prop_oneof![Just(1.0_f32), 0.3_f32..3.0],
        banned_tokens in vec(0..100_u32, 0..4),
        temperature in prop_oneof![0.1_f32..4.0, Just(crate::MIN_TEMPERATURE), Just(1e20)],
        late: bool,
        index: u64,
    ) {
        let order = if late { vec![SamplingStep::RepetitionPenalty] } else { vec![] };
        let options =
            SamplerOptions { temperature, repetition_penalty: penalty, banned_tokens, order, ..greedy() };
        let (all, ranked) = both_ways(options, &logits, &at(&history, index));
        prop_assert_eq!(ranked, Some(all));
    }
}

#[test]
fn distinct_logits_always_decide() {
    let logits: Vec<f32> = (0..400_u16).map(|x| f32::from(x * 37 % 400) / 16.0).collect();
    for index in 0..50 {
        let options = SamplerOptions { temperature: 0.9, top_k: 40, ..greedy() };
        let (all, ranked) = both_ways(options, &logits, &at(&[], index));
        assert_eq!(ranked, Some(all));
    }
}

#[test]
fn errors_are_the_same() {
    let mut logits = vec![0.5; 100];
    logits[3] = 1e30;
    let options = SamplerOptions { repetition_penalty: 1e-20, ..greedy() };
    let (all, ranked) = both_ways(options, &logits, &at(&[9, 3, 3], 0));
    assert!(all.0.as_ref().is_err_and(|error| error.contains("token 3")), "{all:?}");
    assert_eq!(ranked, Some(all));
}

#[test]
fn all_logits_are_needed_where_the_best_do_not_decide() {
    let needs = |options: SamplerOptions, history: &[u32]| {
        Sampler::new(options).expect("in range").needs(&at(history, 0), 100)
    };
    let sampled = SamplerOptions { temperature: 1.0, ..greedy() };
    let top_p = SamplerOptions { top_p: 0.9, ..sampled.clone() };
    assert_eq!(needs(top_p.clone(), &[]), Needs::All, "too many of 100");
    let late = vec![SamplingStep::TopP, SamplingStep::Temperature];
    assert_eq!(needs(SamplerOptions { order: late, ..top_p }, &[]), Needs::All);
    assert_eq!(needs(SamplerOptions { top_k: 18, ..sampled.clone() }, &[]), Needs::All, "too many");
    let coldest = SamplerOptions { temperature: crate::MIN_TEMPERATURE, ..sampled.clone() };
    assert!((2_f32.powi(64) / coldest.temperature).is_finite(), "no logit overflows");
    let penalty = SamplerOptions { repetition_penalty: 1.1, ..greedy() };
    assert_eq!(
        needs(penalty.clone(), &[4, 2, 4]),
        Needs::TopLogits {
            k: 1,
            within: None,
            noise: None,
            top: 0,
            sum: false,
            touched: vec![2, 4]
        }
    );
    assert_eq!(needs(penalty, &[4, 100]), Needs::All, "the error is for all logits to tell");
    let top_k = SamplerOptions { top_k: 5, ..sampled };
    assert_eq!(
        needs(top_k.clone(), &[4]),
        Needs::TopLogits { k: 13, within: None, noise: None, top: 0, sum: false, touched: vec![] }
    );
    let sampler = Sampler::new(top_k).expect("in range");
    let none = sampler.sample_ranked(&[], &at(&[], 0), &mut SamplerState::default());
    assert_eq!(none.expect("no error"), None);
}

/// What acts on single tokens, each on or off.
fn of_tokens() -> impl proptest::strategy::Strategy<Value = SamplerOptions> {
    let on = || prop_oneof![2 => Just(0.0_f32), 1 => -2.0_f32..2.0];
    let penalties = (prop_oneof![Just(1.0_f32), 0.5_f32..2.0], on(), on());
    let dry = (prop_oneof![3 => Just(0.0_f32), 1 => 0.1_f32..2.0], 0..3_usize, 0..20_usize);
    let some = |most: usize| prop_oneof![2 => Just(vec![]), 1 => vec(0..120_u32, 1..most)];
    let biases = prop_oneof![2 => Just(vec![]), 1 => vec((0..100_u32, -9.0_f32..9.0), 1..6)];
    let allowed = prop_oneof![4 => Just(None), 1 => vec(0..120_u32, 1..90).prop_map(Some)];
    let bans = (prop_oneof![2 => Just(0_usize), 1 => 1..4_usize], vec(some(3), 0..3), some(9));
    (penalties, dry, biases, bans, allowed, some(4), 0..4_usize).prop_map(
        |(penalties, dry, biases, bans, allowed_tokens, end_tokens, min_tokens)| {
            let (no_repeat_ngram, mut banned_sequences, banned_tokens) = bans;
            banned_sequences.retain(|sequence| !sequence.is_empty());
            SamplerOptions {
                repetition_penalty: penalties.0,
                frequency_penalty: penalties.1,
                presence_penalty: penalties.2,
                dry_multiplier: dry.0,
                dry_allowed_length: dry.1,
                dry_range: dry.2,
                logit_bias: biases.into_iter().collect(),
                no_repeat_ngram,
                banned_sequences,
                banned_tokens,
                allowed_tokens,
                end_tokens,
                min_tokens,
                ..greedy()
            }
        },
    )
}

/// Those of `of_tokens` with what looks at all tokens, each on or off, in any order.
fn options() -> impl proptest::strategy::Strategy<Value = SamplerOptions> {
    let or = |off: f32, range: std::ops::Range<f32>| prop_oneof![3 => Just(off), 1 => range];
    let temperatures = (prop_oneof![Just(0.0_f32), Just(1.0), 0.2_f32..3.0], or(0.0, 0.1..1.0));
    let usual = (prop_oneof![Just(0_usize), 1..12_usize], or(1.0, 0.1..1.0), or(0.0, 0.01..0.9));
    let others = (or(1.0, 0.1..1.0), or(0.0, 0.001..0.2), or(0.0, 0.001..0.2), or(0.0, 0.5..3.0));
    let last = (or(0.0, 0.3..1.0), 0.0_f32..0.5, or(0.0, 0.5..4.0));
    (of_tokens(), temperatures, usual, others, last, order()).prop_map(
        |(of_tokens, temperatures, usual, others, last, order)| SamplerOptions {
            temperature: temperatures.0,
            dynamic_temperature: temperatures.1,
            top_k: usual.0,
            top_p: usual.1,
            min_p: usual.2,
            typical_p: others.0,
            epsilon_cutoff: others.1,
            eta_cutoff: others.2,
            top_n_sigma: others.3,
            xtc_probability: last.0,
            xtc_threshold: last.1,
            mirostat_tau: last.2,
            order,
            ..of_tokens
        },
    )
}

/// The steps that are named last.
fn order() -> impl proptest::strategy::Strategy<Value = Vec<SamplingStep>> {
    let all = Just(SamplingStep::ORDER.to_vec()).prop_shuffle();
    prop_oneof![2 => Just(vec![]), 1 => (all, 1..21_usize).prop_map(|(mut order, count)| {
        order.truncate(count);
        order
    })]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn every_set_of_options_chooses_the_same(
        options in options(),
        logits in prop_oneof![logits(), peaked()],
        history in vec(0..12_u32, 0..16),
        allowed in prop_oneof![
            3 => Just(None),
            1 => vec(0..300_u32, 1..6).prop_map(Some),
            1 => vec(0..300_u32, 60..200).prop_map(Some),
        ],
        index: u64,
    ) {
        let mut mask = TokenMask::none(logits.len());
        allowed.iter().flatten().for_each(|&token| mask.insert(token));
        let step = Step { allowed: allowed.is_some().then_some(&mask), ..at(&history, index) };
        let any = TokenMask::all(logits.len());
        let early = Step { allowed: step.allowed.map(|_| &any), ..step };
        for asked in [&step, &early] {
            let (all, ranked) = asked_at(options.clone(), &logits, (asked, &step));
            if let Some(ranked) = ranked {
                prop_assert_eq!(ranked, all);
            }
        }
    }
}

/// The law above says nothing where all logits are requested: where they are not.
#[test]
fn few_logits_are_enough_for() {
    let logits: Vec<f32> = (0..400_u16).map(|x| f32::from(x * 37 % 400) / 16.0).collect();
    let warm = SamplerOptions { temperature: 0.9, ..greedy() };
    let mut mask = TokenMask::none(400);
    (0..7).for_each(|token| mask.insert(token));
    let few = Step { allowed: Some(&mask), ..at(&[1, 2, 1, 3, 1], 5) };
    let all = Step { allowed: None, ..few };
    let cases = [
        (SamplerOptions { frequency_penalty: 0.5, presence_penalty: 0.5, ..greedy() }, all),
        (SamplerOptions { no_repeat_ngram: 2, dry_multiplier: 1.0, ..greedy() }, all),
        (SamplerOptions { banned_tokens: vec![399, 54, 3], ..greedy() }, all),
        (SamplerOptions { logit_bias: [(4, 99.0)].into(), ..greedy() }, all),
        (warm.clone(), all),
        (SamplerOptions { top_p: 0.9, ..warm.clone() }, all),
        (SamplerOptions { top_p: 0.8, repetition_penalty: 1.2, ..warm.clone() }, all),
        (SamplerOptions { frequency_penalty: 0.5, min_tokens: 9, ..warm.clone() }, all),
        (SamplerOptions { top_k: 8, typical_p: 0.9, mirostat_tau: 2.0, ..warm.clone() }, all),
        (SamplerOptions { min_p: 0.1, xtc_probability: 1.0, eta_cutoff: 0.1, ..warm.clone() }, all),
        (greedy(), few),
        (SamplerOptions { top_n_sigma: 1.0, top_p: 0.9, ..warm.clone() }, few),
        (SamplerOptions { dynamic_temperature: 0.5, mirostat_tau: 1.0, ..warm.clone() }, few),
        (SamplerOptions { allowed_tokens: Some(vec![3, 5, 7, 500]), ..warm.clone() }, all),
    ];
    for (options, step) in cases {
        let (expected, ranked) = both_ways(options.clone(), &logits, &step);
        assert_eq!(ranked, Some(expected), "{options:?}");
    }
    for options in [
        SamplerOptions { top_p: 0.9, xtc_probability: 0.5, ..warm.clone() },
        SamplerOptions { top_n_sigma: 1.0, top_k: 5, ..warm.clone() },
        SamplerOptions { dynamic_temperature: 1.0, top_k: 5, ..warm.clone() },
        SamplerOptions { order: vec![SamplingStep::TopK], top_k: 5, top_p: 0.5, ..warm },
    ] {
        assert_eq!(both_ways(options.clone(), &logits, &all).1, None, "{options:?}");
    }
}

#[test]
fn a_mask_that_allows_none_of_the_best_asks_for_all() {
    let logits: Vec<f32> = (0..8000_u16).rev().map(f32::from).collect();
    let mut mask = TokenMask::none(8000);
    (4000..8000).for_each(|token| mask.insert(token));
    let step = Step { allowed: Some(&mask), ..at(&[], 0) };
    let sampler = Sampler::new(greedy()).expect("in range");
    let needs = sampler.needs(&step, 8000);
    assert_eq!(
        needs,
        Needs::TopLogits { k: 16, within: None, noise: None, top: 0, sum: false, touched: vec![] }
    );
    assert_eq!(both_ways(greedy(), &logits, &step).1, None);
    mask.insert(15);
    let step = Step { allowed: Some(&mask), ..at(&[], 0) };
    let (all, ranked) = both_ways(greedy(), &logits, &step);
    assert_eq!((all.0.as_ref(), ranked.as_ref()), (Ok(&15), Some(&all)));
}
