//! The sampler against its options by the letter, and against numbers of others.

use std::collections::BTreeMap;

use proptest::{collection::vec, prelude::*};
use setun_ops::noise::GOLDEN;

use super::*;
use crate::draw::absorbed;

/// A written-out form of the steps: a vocabulary with holes, and softmax before each.
struct Letter<'a> {
    options: &'a SamplerOptions,
    logits: Vec<Option<f64>>,
}

impl Letter<'_> {
    fn softmax(&self) -> Vec<f64> {
        let best = self.logits.iter().flatten().copied().fold(f64::NEG_INFINITY, f64::max);
        let weight = |logit: &Option<f64>| logit.map_or(0.0, |logit| (logit - best).exp());
        let weights: Vec<f64> = self.logits.iter().map(weight).collect();
        let total: f64 = weights.iter().sum();
        weights.into_iter().map(|weight| weight / total).collect()
    }

    fn entropy(&self) -> f64 {
        self.softmax().into_iter().filter(|&p| p > 0.0).map(|p| -p * p.ln()).sum()
    }

    /// The tokens that are left, the best first.
    fn ranked(&self) -> Vec<usize> {
        let left = |&token: &usize| self.logits[token].is_some();
        let mut ids: Vec<usize> = (0..self.logits.len()).filter(left).collect();
        ids.sort_by(|&a, &b| self.logits[b].partial_cmp(&self.logits[a]).expect("finite"));
        ids
    }

    fn keep(&mut self, keep: impl Fn(usize, f64) -> bool) {
        for (token, logit) in self.logits.iter_mut().enumerate() {
            *logit = logit.filter(|&logit| keep(token, logit));
        }
    }

    fn take(&mut self, step: SamplingStep) {
        let options = self.options;
        let (p, ranked, entropy) = (self.softmax(), self.ranked(), self.entropy());
        let (best, best_logit) = (p[ranked[0]], self.logits[ranked[0]].expect("it is left"));
        let cutoff = |least: f64| move |p: f64, logit: f64| p >= least || logit == best_logit;
        match step {
            SamplingStep::Temperature => {
                let (middle, range) = (options.temperature, options.dynamic_temperature);
                let count = f64::from(u32::try_from(ranked.len()).expect("few"));
                let share = if count > 1.0 { (entropy / count.ln()).min(1.0) } else { 0.5 };
                let share = share.powf(f64::from(options.dynamic_temperature_exponent));
                let [low, high] = [(middle - range).max(0.0), middle + range].map(f64::from);
                let divisor = low + (high - low) * share;
                self.logits.iter_mut().flatten().for_each(|logit| *logit /= divisor);
            }
            SamplingStep::TopNSigma => {
                let left: Vec<f64> = self.logits.iter().flatten().copied().collect();
                let count = f64::from(u32::try_from(left.len()).expect("few"));
                let mean = left.iter().sum::<f64>() / count;
                let square = left.iter().map(|logit| (logit - mean).powi(2)).sum::<f64>() / count;
                let least = best_logit - f64::from(options.top_n_sigma) * square.sqrt();
                self.keep(|_, logit| logit >= least);
            }
            SamplingStep::TopK => {
                let last = ranked[options.top_k.min(ranked.len()) - 1];
                let last = self.logits[last].expect("it is left");
                self.keep(|_, logit| logit >= last);
            }
            SamplingStep::TopP => {
                let share = f64::from(options.top_p);
                let before = |index: usize| ranked[..index].iter().map(|&id| p[id]).sum::<f64>();
                let kept: Vec<usize> = (0..ranked.len())
                    .filter(|&i| i == 0 || before(i) < share)
                    .map(|i| ranked[i])
                    .collect();
                self.keep(|token, _| kept.contains(&token));
            }
            SamplingStep::MinP => self.keep(|token, _| p[token] >= f64::from(options.min_p) * best),
            SamplingStep::TypicalP => {
                let distance: Vec<f64> = p.iter().map(|p| (-p.ln() - entropy).abs()).collect();
                let mut order = ranked;
                order.sort_by(|&a, &b| distance[a].partial_cmp(&distance[b]).expect("finite"));
                let mut sum = 0.0;
                let last = order.iter().find(|&&token| {
                    sum += p[token];
                    sum >= f64::from(options.typical_p)
                });
                let most = distance[*last.or(order.last()).expect("one is left")];
                self.keep(|token, _| distance[token] <= most);
            }
            SamplingStep::EpsilonCutoff => {
                let keep = cutoff(f64::from(options.epsilon_cutoff));
                self.keep(|token, logit| keep(p[token], logit));
            }
            SamplingStep::EtaCutoff => {
                let eta = f64::from(options.eta_cutoff);
                let keep = cutoff(eta.min(eta.sqrt() * (-entropy).exp()));
                self.keep(|token, logit| keep(p[token], logit));
            }
            SamplingStep::Xtc => {
                let above = |&&token: &&usize| p[token] >= f64::from(options.xtc_threshold);
                let top = ranked.iter().filter(above).count();
                let dropped = &ranked[..top.saturating_sub(1)];
                self.keep(|token, _| !dropped.contains(&token));
            }
            SamplingStep::Mirostat => {
                let most = 2.0 * f64::from(options.mirostat_tau);
                self.keep(|token, _| -p[token].log2() <= most || token == ranked[0]);
            }
            other => panic!("{other} has no definition here"),
        }
    }
}

/// Random options: each filter on or off, at values where no token lies at the very edge.
fn filters() -> impl proptest::strategy::Strategy<Value = SamplerOptions> {
    let temperatures = (0.3_f32..3.0, prop_oneof![Just(0.0_f32), 0.1_f32..0.25], 0.5_f32..2.0);
    let or = |off: f32, range: std::ops::Range<f32>| prop_oneof![3 => Just(off), 1 => range];
    let first = (or(0.0, 0.3..2.0), 0..30_usize, or(1.0, 0.05..1.0), or(0.0, 0.01..0.9));
    let second = (or(1.0, 0.05..1.0), or(0.0, 0.01..0.2), or(0.0, 0.01..0.2));
    let third = (prop_oneof![3 => Just(0.0_f32), 1 => Just(1.0)], 0.05_f32..0.5, or(0.0, 0.5..4.0));
    (temperatures, first, second, third).prop_map(|(temperatures, first, second, third)| {
        let (temperature, dynamic_temperature, dynamic_temperature_exponent) = temperatures;
        let (top_n_sigma, top_k, top_p, min_p) = first;
        let (typical_p, epsilon_cutoff, eta_cutoff) = second;
        let (xtc_probability, xtc_threshold, mirostat_tau) = third;
        SamplerOptions {
            temperature,
            top_k,
            top_p,
            min_p,
            dynamic_temperature,
            dynamic_temperature_exponent,
            top_n_sigma,
            typical_p,
            epsilon_cutoff,
            eta_cutoff,
            xtc_probability,
            xtc_threshold,
            mirostat_tau,
            ..SamplerOptions::default()
        }
    })
}

/// Any order of the steps that look at all tokens.
fn order() -> impl proptest::strategy::Strategy<Value = Vec<SamplingStep>> {
    let filters = SamplingStep::ORDER.iter().filter(|step| !step.is_of_tokens());
    Just(filters.copied().collect::<Vec<_>>()).prop_shuffle()
}

fn probabilities(options: SamplerOptions, logits: &[f32], history: &[u32]) -> Vec<(u32, f64)> {
    let sampler = Sampler::new(options).expect("in range");
    let step = Step::new(history, 0, Draw::default());
    sampler.probabilities(logits, &step, &SamplerState::default()).expect("some are left")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// Both in f64, but for logits after a temperature; a token that lies within 1e-5 of an edge
    /// may fall on either side, so such cases are left out by what is left.
    #[test]
    fn every_order_of_every_filter_keeps_what_the_letter_says(
        options in filters(),
        order in order(),
        logits in vec(-4.0_f32..4.0, 1..40),
        usual: bool,
    ) {
        let options = SamplerOptions { order: if usual { vec![] } else { order }, ..options };
        let mut letter = Letter {
            options: &options,
            logits: logits.iter().map(|&logit| Some(f64::from(logit))).collect(),
        };
        for step in SamplingStep::ordered(&options.order).expect("none is named twice") {
            if options.takes(step) {
                letter.take(step);
            }
        }
        let expected = letter.softmax();
        let found: BTreeMap<u32, f64> = probabilities(options.clone(), &logits, &[]).into_iter().collect();
        let ids: Vec<u32> = found.keys().copied().collect();
        let left: Vec<u32> =
            (0..).zip(&letter.logits).filter_map(|(token, logit)| logit.map(|_| token)).collect();
        prop_assume!(ids == left || !is_close(&options, &logits));
        prop_assert_eq!(&ids, &left);
        for (token, p) in found {
            prop_assert!((p - expected[token as usize]).abs() < 1e-5, "{}: {}", token, p);
        }
    }
}

/// The definition of a draw: the token with the highest sum of logit and noise.
#[expect(clippy::cast_precision_loss, reason = "52 bits fit an f64 exactly")]
fn drawn(tokens: &[Ranked], draw: Draw) -> Option<u32> {
    let key = absorbed([draw.seed, draw.sequence, draw.index, 2]);
    let score = |token: u32, logit: f32| {
        let bits = absorbed([key.wrapping_add(u64::from(token).wrapping_mul(GOLDEN))]);
        let u = ((bits >> 12) as f64 + 0.5) / 2.0_f64.powi(52);
        f64::from(logit) - libm::log(-libm::log(u))
    };
    let scored =
        tokens.iter().map(|ranked| (score(ranked.token(), ranked.logit()), ranked.token()));
    let mut scored: Vec<(f64, u32)> = scored.collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    scored.first().map(|&(_, token)| token)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_draw_is_the_best_of_all_scores(
        options in filters(),
        order in order(),
        logits in prop_oneof![
            vec(-9.0_f32..9.0, 1..300),
            vec((-2_i8..3).prop_map(f32::from), 1..300),
            vec(Just(-3e37_f32), 2..9),
        ],
        draw: (u64, u64, u64),
    ) {
        let sampler = Sampler::new(SamplerOptions { order, ..options }).expect("in range");
        let (seed, sequence, index) = draw;
        let step = Step::new(&[], 0, Draw { seed, sequence, index });
        let mut state = SamplerState::default();
        let left = sampler.take(&sampler.steps, row(&logits, &step), &step, &state);
        let left = left.and_then(LogitsState::list).expect("some are left");
        let found = sampler.sample(&logits, &step, &mut state).expect("some are left").token;
        prop_assert_eq!(Some(found), drawn(left.tokens(), step.draw));
    }
}

/// Whether the options, changed by very little, leave other tokens.
fn is_close(options: &SamplerOptions, logits: &[f32]) -> bool {
    let kept = |factor: f32| {
        let options = SamplerOptions {
            top_n_sigma: options.top_n_sigma * factor,
            top_p: (options.top_p * factor).min(1.0),
            min_p: (options.min_p * factor).min(1.0),
            typical_p: (options.typical_p * factor).min(1.0),
            epsilon_cutoff: options.epsilon_cutoff * factor,
            eta_cutoff: options.eta_cutoff * factor,
            xtc_threshold: (options.xtc_threshold * factor).min(0.5),
            mirostat_tau: options.mirostat_tau * factor,
            ..options.clone()
        };
        probabilities(options, logits, &[]).into_iter().map(|(token, _)| token).collect::<Vec<_>>()
    };
    kept(1.0 - 1e-4) != kept(1.0 + 1e-4)
}

/// Options, probabilities before and the tokens that are left with theirs: the cases of
/// llama.cpp's `tests/test-sampling.cpp` (MIT) for the steps that transformers lacks.
#[test]
fn filters_of_llama_cpp() {
    let warm = SamplerOptions { temperature: 1.0, ..SamplerOptions::default() };
    let typical = |typical_p| SamplerOptions { typical_p, ..warm.clone() };
    let sigma = |top_n_sigma| SamplerOptions { top_n_sigma, ..warm.clone() };
    let xtc =
        |xtc_threshold| SamplerOptions { xtc_probability: 1.0, xtc_threshold, ..warm.clone() };
    let (up, down) = ([0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1]);
    let cases: [(SamplerOptions, [f32; 4], [f64; 4]); 9] = [
        (typical(0.5), [0.97, 0.01, 0.01, 0.01], [1.0, 0.0, 0.0, 0.0]),
        (typical(0.5), [0.4, 0.2, 0.2, 0.2], [0.0, 1.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0]),
        (sigma(1.0), up, [0.0, 0.0, 0.428_571, 0.571_429]),
        (sigma(0.0), up, [0.1, 0.2, 0.3, 0.4]),
        (sigma(3.0), up, [0.1, 0.2, 0.3, 0.4]),
        (xtc(0.09), down, [0.0, 0.0, 0.0, 1.0]),
        (xtc(0.19), down, [0.0, 0.0, 2.0 / 3.0, 1.0 / 3.0]),
        (xtc(0.29), down, [0.0, 0.5, 1.0 / 3.0, 1.0 / 6.0]),
        (xtc(0.39), down, [0.4, 0.3, 0.2, 0.1]),
    ];
    for (options, before, expected) in cases {
        has(&options, &before, &[], &expected);
    }
}

/// Penalties from the same file: of a uniform distribution after these tokens.
#[test]
fn penalties_of_llama_cpp() {
    let warm = SamplerOptions { temperature: 1.0, ..SamplerOptions::default() };
    let dry = |dry_multiplier, dry_allowed_length, dry_range, breakers: &[u32]| SamplerOptions {
        dry_multiplier,
        dry_base: 1.1,
        dry_allowed_length,
        dry_range,
        dry_breakers: breakers.to_vec(),
        ..warm.clone()
    };
    has(&dry(1.0, 2, 4, &[]), &[0.25; 4], &[0, 1], &[0.25; 4]);
    let expected = [0.296_923, 0.296_923, 0.109_232, 0.296_923];
    has(&dry(1.0, 2, 5, &[]), &[0.25; 4], &[0, 1, 2, 0, 1], &expected);
    has(&dry(1.0, 2, 6, &[3]), &[0.2; 5], &[0, 1, 3, 4, 0, 1], &[0.2; 5]);
    let expected = [0.241_818, 0.241_818, 0.032_727, 0.241_818, 0.241_818];
    has(&dry(2.0, 2, 5, &[]), &[0.2; 5], &[0, 1, 2, 0, 1], &expected);
    has(&dry(1.0, 4, 7, &[]), &[0.2; 5], &[0, 1, 2, 3, 4, 0, 1], &[0.2; 5]);

    // Its penalties of 5 are beyond our range: 2 of each, the rest by a bias that is worked out.
    let both = SamplerOptions { frequency_penalty: 2.0, presence_penalty: 2.0, ..warm.clone() };
    let more = |bias: &[(u32, f32)]| SamplerOptions {
        logit_bias: bias.iter().copied().collect(),
        ..both.clone()
    };
    has(
        &more(&[(0, -6.0)]),
        &[0.2; 5],
        &[0],
        &[0.000_011, 0.249_997, 0.249_997, 0.249_997, 0.249_997],
    );
    let thrice = more(&[(0, -12.0), (1, -6.0), (2, -6.0)]);
    has(&thrice, &[0.2; 5], &[0, 1, 2, 0, 0], &[0.0, 0.000_023, 0.000_023, 0.499_977, 0.499_977]);
}

fn has(options: &SamplerOptions, before: &[f32], history: &[u32], expected: &[f64]) {
    let logits: Vec<f32> = before.iter().map(|p| p.ln()).collect();
    let mut left = vec![0.0; expected.len()];
    for (token, p) in probabilities(options.clone(), &logits, history) {
        left[token as usize] = p;
    }
    for (found, expected) in left.iter().zip(expected) {
        assert!((found - expected).abs() < 1e-5, "{left:?}: {options:?}");
    }
}

/// llama.cpp's `dynatemp`, by hand: of 1/2, 1/4, 1/8, 1/8 the entropy is 1.75 of 2 bits, so with
/// an exponent of 1 the temperature is 7/8 of the way from 0.5 to 1.5.
#[test]
fn a_dynamic_temperature_by_hand() {
    let logits = [0.5_f32, 0.25, 0.125, 0.125].map(f32::ln);
    let with = |temperature, dynamic_temperature, exponent| {
        let options = SamplerOptions {
            temperature,
            dynamic_temperature,
            dynamic_temperature_exponent: exponent,
            ..SamplerOptions::default()
        };
        probabilities(options, &logits, &[])
    };
    for (exponent, divisor) in [(1.0, 1.375_f64), (2.0, 0.5 + 49.0 / 64.0)] {
        let weights = [0.5_f64, 0.25, 0.125, 0.125].map(|p| p.powf(1.0 / divisor));
        let total: f64 = weights.iter().sum();
        for ((_, found), weight) in with(1.0, 0.5, exponent).into_iter().zip(weights) {
            assert!((found - weight / total).abs() < 1e-6, "{found}, not {}", weight / total);
        }
    }
    let sure = SamplerOptions { temperature: 1.0, dynamic_temperature: 1.0, ..Default::default() };
    assert_eq!(probabilities(sure, &[0.0, 900.0, 0.0], &[]), [(1, 1.0)], "a temperature of 0");
}

/// Mirostat's second version by hand: τ = 1, η = 0.5, probabilities 1/2, 1/4, 1/8, 1/8. *μ*
/// is 2 at first, which leaves 2/3 and 1/3; then it follows the surprise of what was drawn.
#[test]
fn mirostat_by_hand() {
    let logits = [0.5_f32, 0.25, 0.125, 0.125].map(|p| p.log2() * std::f32::consts::LN_2);
    let options = SamplerOptions {
        temperature: 1.0,
        mirostat_tau: 1.0,
        mirostat_eta: 0.5,
        ..SamplerOptions::default()
    };
    let sampler = Sampler::new(options).expect("in range");
    let mut state = SamplerState::default();
    let mut most = 2.0 + 1e-6; // the surprise of 1/4 is 2 but for rounding
    let mut lengths = [0; 5];
    for index in 0..200 {
        let step = Step::new(&[], 0, Draw { seed: 8, sequence: 0, index });
        let left = sampler.probabilities(&logits, &step, &state).expect("some are left");
        let count = match most {
            most if most >= 3.0 => 4,
            most if most >= 2.0 => 2,
            _ => 1,
        };
        assert!(left.len() == count || (most - 2.0_f64).abs() < 1e-5 || (most - 3.0).abs() < 1e-5);
        lengths[left.len()] += 1;
        let chosen = sampler.sample(&logits, &step, &mut state).expect("some are left").token;
        let share = [0.5, 0.25, 0.125, 0.125][..left.len()].iter().sum::<f64>();
        let surprise = -([0.5, 0.25, 0.125, 0.125][chosen as usize] / share).log2();
        most -= 0.5 * (surprise - 1.0);
    }
    assert!(lengths[1] > 3 && lengths[2] > 50 && lengths[4] > 10, "{lengths:?}");
}
