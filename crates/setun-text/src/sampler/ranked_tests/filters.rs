//! Draws from what filters by a share of the probability leave, where few tokens are listed.

use super::{at, both_ways, greedy};
use crate::{SamplerOptions, SamplingStep};

/// A row whose weights fall with the fourth power of the rank at temperature 1: 92 % of the
/// probability is the best token's, or 35 % at a temperature of 2.
fn row() -> Vec<f32> {
    (1..=400_u16).map(|rank| -4.0 * f32::from(rank).ln()).collect()
}

/// How many draws of 300 few logits decide, of which a third have no bound of the sum; all are the same.
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
fn most_draws_are_decided() {
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
