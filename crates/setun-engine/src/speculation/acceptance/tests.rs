//! The rule of acceptance, in closed form and drawn.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// The probability of each token that comes of a draft from `q`: the sum over all that can happen.
fn outcomes(p: &Distribution, q: &Distribution) -> BTreeMap<u32, f64> {
    let mut outcomes = BTreeMap::new();
    let beyond = residual(p, q);
    for &(drafted, q) in q {
        let stays = acceptance(probability(p, drafted), q);
        *outcomes.entry(drafted).or_insert(0.0) += q * stays;
        for &(token, share) in &beyond {
            *outcomes.entry(token).or_insert(0.0) += q * (1.0 - stays) * share;
        }
    }
    outcomes
}

fn assert_same(p: &Distribution, outcomes: &BTreeMap<u32, f64>) {
    for (&token, &found) in outcomes {
        let expected = probability(p, token);
        assert!((found - expected).abs() < 1e-12, "token {token}: {found}, expected {expected}");
    }
    let total: f64 = outcomes.values().sum();
    assert!((total - 1.0).abs() < 1e-12, "{total}");
}

/// Some tokens with weights, of which some may be as good as none.
fn distribution() -> impl Strategy<Value = Vec<(u32, f64)>> {
    let weight = prop_oneof![1e-9..1e-6, 0.01..1.0, Just(1.0)];
    let weights = prop::collection::btree_map(0..12u32, weight, 1..12);
    (weights, any::<prop::sample::Index>()).prop_map(|(weights, first)| {
        let total: f64 = weights.values().sum();
        let mut pairs: Vec<_> = weights.into_iter().map(|(token, w)| (token, w / total)).collect();
        let middle = first.index(pairs.len());
        pairs.rotate_left(middle); // no order is needed
        pairs
    })
}

proptest! {
    #[test]
    fn what_comes_has_the_distribution_of_the_target(p in distribution(), q in distribution()) {
        assert_same(&p, &outcomes(&p, &q));
    }

    #[test]
    fn a_token_that_was_not_drawn_is_certain(p in distribution(), token in 0..14u32) {
        assert_same(&p, &outcomes(&p, &[(token, 1.0)]));
    }

    #[test]
    fn equal_distributions_keep_every_token(p in distribution(), seed: u64) {
        let draw = Draw { seed, ..Draw::default() };
        let token = propose(&p, draw).expect("a token");
        let verdict = verify(&p, token, Some(&p), draw).expect("a sound draft");
        prop_assert_eq!(verdict, Verdict { token, is_accepted: true });
    }
}

#[test]
fn drawn_tokens_are_as_often_as_they_should_be() {
    let p = [(0, 0.5), (1, 0.3), (2, 0.15), (3, 0.05)];
    let drafts: [&Distribution; 4] =
        [&[(3, 0.9), (2, 0.05), (1, 0.03), (0, 0.02)], &[(4, 0.6), (0, 0.4)], &p, &[(1, 1.0)]];
    for q in drafts {
        let mut counts = [0_u32; 5];
        let mut accepted = 0_u32;
        for seed in 0..40_000 {
            let draw = Draw { seed, sequence: 3, index: 5 };
            let token = propose(q, draw).expect("a token");
            let verdict = verify(&p, token, Some(q), draw).expect("a sound draft");
            counts[verdict.token as usize] += 1;
            accepted += u32::from(verdict.is_accepted);
        }
        let expected = |token: u32| 40_000.0 * probability(&p, token);
        let distance: f64 = (0..4)
            .map(|token| {
                (f64::from(counts[token as usize]) - expected(token)).powi(2) / expected(token)
            })
            .sum();
        // Three degrees of freedom: 21.1 is exceeded once in 10,000 times.
        assert!(distance < 21.1, "{counts:?} of {q:?}: {distance}");
        assert_eq!(counts[4], 0, "a token that the target does not have");
        // It stays as often as both agree: the sum of min(p, q).
        let agreed: f64 = q.iter().map(|&(token, q)| q.min(probability(&p, token))).sum();
        let deviation = (40_000.0 * agreed * (1.0 - agreed)).sqrt().max(1e-6);
        let off = (f64::from(accepted) - 40_000.0 * agreed).abs();
        assert!(off <= 4.0 * deviation, "{accepted} of {q:?}");
    }
}

#[test]
fn a_probability_that_cannot_be_is_refused() {
    let p = [(0, 0.5), (1, 0.5)];
    for bad in [0.0, -0.5, 1.1, f64::NAN, f64::INFINITY] {
        let q = [(1, bad), (0, 0.5)];
        let error = verify(&p, 1, Some(&q), Draw::default()).expect_err("no probability");
        assert!(matches!(error, Error::DraftProbability { token: 1, .. }), "{error}");
    }
    let error = verify(&p, 1, Some(&[(0, 1.0)]), Draw::default()).expect_err("not drawn from it");
    assert!(matches!(error, Error::DraftProbability { token: 1, found: 0.0, .. }), "{error}");
}

#[test]
fn what_rounding_leaves_of_nothing_is_the_target() {
    let p = [(7, 0.25), (8, 0.75)];
    assert_eq!(residual(&p, &p), p);
    assert_eq!(residual(&p, &[(8, 1.0)]), [(7, 1.0)]);
    assert_eq!(acceptance(0.0, 0.5), 0.0);
}
