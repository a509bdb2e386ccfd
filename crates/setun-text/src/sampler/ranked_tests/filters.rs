//! Draws from what filters by a share of the probability leave, where few tokens are listed.

use proptest::{collection::vec, prelude::*};

use super::{asked_at, at, both_ways, greedy, logits, order, peaked};
use crate::{SamplerOptions, SamplingStep, Step, TokenMask};

/// A row whose weights fall with the fourth power of the rank at temperature 1: the best token has
/// 92 % of the probability, or 61 % at a temperature of 2.
fn row() -> Vec<f32> {
    (1..=400_u16).map(|rank| -4.0 * f32::from(rank).ln()).collect()
}

/// The number of draws that few logits decide, of 300. A third of them have no bound of the sum.
fn decided(options: &SamplerOptions) -> usize {
    let draws = (0..300).map(|index| both_ways(options.clone(), &row(), &at(&[5, 9, 5], index)));
    let decided = draws.filter_map(|(all, ranked)| {
        let ranked = ranked?;
        assert_eq!(ranked, all, "{options:?}");
        Some(())
    });
    decided.count()
}

#[test]
fn most_draws_need_few_logits() {
    let warm = SamplerOptions { temperature: 2.0, ..greedy() };
    let cases = [
        (SamplerOptions { typical_p: 0.95, ..warm.clone() }, 185),
        (SamplerOptions { typical_p: 0.95, temperature: 1.0, ..warm.clone() }, 190),
        (SamplerOptions { typical_p: 0.8, repetition_penalty: 1.3, ..warm.clone() }, 165),
        (SamplerOptions { epsilon_cutoff: 0.005, ..warm.clone() }, 240),
        (SamplerOptions { eta_cutoff: 0.005, logit_bias: [(8, 3.0)].into(), ..warm.clone() }, 240),
        (SamplerOptions { top_p: 0.9, min_p: 0.01, ..warm.clone() }, 260),
        (SamplerOptions { top_p: 0.9, typical_p: 0.95, ..warm.clone() }, 160),
        (
            SamplerOptions {
                order: vec![SamplingStep::Temperature, SamplingStep::TypicalP, SamplingStep::TopK],
                typical_p: 0.9,
                top_k: 20,
                ..warm
            },
            175,
        ),
    ];
    for (options, least) in cases {
        let found = decided(&options);
        assert!((least..=300).contains(&found), "{found} of 300: {options:?}");
    }
}

/// Shares near the ends of their range, too.
fn share() -> impl proptest::strategy::Strategy<Value = f32> {
    let ends = [0.0, f32::MIN_POSITIVE, 1.0_f32.next_down(), 1.0];
    prop_oneof![2 => Just(1.0_f32), 3 => 0.3_f32..1.0, 1 => prop::sample::select(ends.to_vec())]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    /// Whatever the temperature, what a bias lifts out of reach of all others, what is banned, and how
    /// filters follow each other; also where a mask comes late.
    #[test]
    fn draws_by_filters_are_the_same(
        logits in prop_oneof![
            4 => peaked(),
            2 => logits().prop_map(|logits| logits.repeat(3)),
            1 => vec(prop_oneof![Just(1.8e19_f32), Just(-1.8e19), Just(1.7e19)], 260..400),
        ],
        history in vec(0..260_u32, 0..3),
        penalty in prop_oneof![2 => Just(1.0_f32), 1 => 0.3_f32..3.0],
        bias in prop_oneof![3 => Just(None), 1 => (0..260_u32, -2000.0_f32..2000.0).prop_map(Some)],
        banned_tokens in vec(0..260_u32, 0..4),
        temperature in prop_oneof![6 => 0.1_f32..4.0, 1 => Just(crate::MIN_TEMPERATURE), 1 => Just(1e20)],
        (top_p, typical_p) in (share(), share()),
        (epsilon_cutoff, eta_cutoff) in (prop_oneof![Just(0.0_f32), 1e-5_f32..0.1], prop_oneof![Just(0.0_f32), 1e-5_f32..0.1]),
        (top_k, min_p) in (prop_oneof![2 => Just(0_usize), 1 => 1..20_usize], prop_oneof![Just(0.0_f32), 0.001_f32..0.5]),
        order in prop_oneof![1 => Just(vec![]), 2 => order()],
        late in prop_oneof![3 => Just(None), 1 => vec(0..260_u32, 1..6).prop_map(Some)],
        index: u64,
    ) {
        let options = SamplerOptions {
            temperature, top_p, typical_p, epsilon_cutoff, eta_cutoff, top_k, min_p, banned_tokens,
            repetition_penalty: penalty, logit_bias: bias.into_iter().collect(), order, ..greedy()
        };
        let mut mask = TokenMask::none(logits.len());
        late.iter().flatten().for_each(|&token| mask.insert(token));
        let asked = at(&history, index);
        let step = Step { allowed: late.is_some().then_some(&mask), ..asked };
        let (all, ranked) = asked_at(options, &logits, (&asked, &step));
        if let Some(ranked) = ranked {
            prop_assert_eq!(ranked, all);
        }
    }
}
