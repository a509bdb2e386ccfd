//! Lists of candidates against full sorts.

use proptest::{collection::vec, prelude::*};

use super::*;
use crate::Draw;

fn ranked(logits: &[f32]) -> Vec<Ranked> {
    (0..).zip(logits).map(|(token, &logit)| Ranked::new(token, logit)).collect()
}

fn ids(tokens: &[Ranked]) -> Vec<u32> {
    tokens.iter().map(|token| token.token()).collect()
}

#[test]
fn orders_by_logit_then_id() {
    let mut tokens = ranked(&[0.0, -1.5, 2.0, -0.0, 2.0, f32::MIN, f32::MAX]);
    tokens.sort_unstable();
    assert_eq!(ids(&tokens), [6, 2, 4, 0, 3, 1, 5]);
}

#[test]
fn top_p_keeps_the_token_that_reaches_the_share_and_at_least_one() {
    let ln_2 = std::f32::consts::LN_2;
    let kept = |share| {
        let mut list = RankedCandidates::new(ranked(&[0.0, 2.0 * ln_2, 0.0, ln_2]));
        list.keep_top_p(share);
        ids(list.tokens())
    };
    let all = [1, 3, 0, 2];
    let shares = [(0.0, 1), (0.49, 1), (0.51, 2), (0.74, 2), (0.76, 3), (1.0, 4)];
    for (share, count) in shares {
        assert_eq!(kept(share), all[..count], "{share}");
    }
}

#[test]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "random bits")]
fn many_are_sorted_digit_by_digit_as_by_comparing() {
    let draw = |index, number| Draw { seed: 3, sequence: 0, index }.uniform(number);
    // Of all magnitudes and both signs, and many that tie.
    let wide = |index| f32::from_bits((draw(index, 0) * f64::from(u32::MAX)) as u32);
    let tied = |index| (draw(index, 1) * 50.0).floor() as f32 - 25.0;
    let logit = |index| if draw(index, 2) < 0.5 { tied(index) } else { wide(index) };
    let logits: Vec<f32> = (0..3 * MANY as u64).map(logit).map(finite_or_zero).collect();
    let mut ascending = ranked(&logits);
    let mut scattered: Vec<_> = ascending.iter().rev().copied().collect();
    let mut expected = ascending.clone();
    expected.sort_unstable();
    sort(&mut ascending);
    sort(&mut scattered);
    assert!(ascending == expected);
    assert!(scattered == expected);
}

fn finite_or_zero(logit: f32) -> f32 {
    if logit.is_finite() { logit } else { 0.0 }
}

/// Of rows that are flat, steep or tied, for all shares: only draws at the edge are left undecided.
#[test]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small numbers")]
fn a_nucleus_is_drawn_from_without_a_sort_as_with_one() {
    let (mut decided, mut all) = (0, 0);
    for index in 0..1500_u64 {
        let uniform = |number| Draw { seed: 4, sequence: 1, index }.uniform(number);
        let count = [1, 2, 7, 300, 5000][(index % 5) as usize];
        let spread = [0.0, 0.5, 3.0, 60.0][(uniform(0) * 4.0) as usize];
        let step = if uniform(1) < 0.5 { spread / 8.0 } else { 1e-6 };
        let logit = |token: u64| {
            let x = Draw { seed: 5, sequence: index, index: token }.uniform(0) * spread;
            if step > 0.0 { ((x / step).floor() * step) as f32 } else { 0.0 }
        };
        let logits: Vec<f32> = (0..count).map(logit).collect();
        let share = [0.0, 0.3, 0.5, 0.95, 0.999][(uniform(2) * 5.0) as usize];
        let noise = Draw { seed: 6, sequence: 0, index }.noise();
        let mut list = RankedCandidates::new(ranked(&logits));
        let found = list.draw_top_p(share, noise);
        list.keep_top_p(share);
        let expected = list.draw(noise, None).map(|(drawn, _)| drawn.token());
        assert!(found.is_none() || found == expected, "{found:?}, not {expected:?}: {logits:?}");
        all += 1;
        decided += u32::from(found.is_some());
    }
    assert!(decided > all * 8 / 10, "{decided} of {all}");
}

#[test]
fn a_nucleus_whose_edge_is_drawn_is_sorted() {
    // Four of the same weight: those before the third have half of it, which is not less.
    let list = RankedCandidates::new(ranked(&[1.0; 4]));
    let drawn = (0..200).map(|index| {
        let noise = Draw { seed: 1, sequence: 0, index }.noise();
        let of_all = list.draw(noise, None).map(|(drawn, _)| drawn.token());
        (of_all, list.draw_top_p(0.5, noise))
    });
    let (mut edges, mut others) = (0, 0);
    for (of_all, of_nucleus) in drawn {
        match of_all {
            Some(0 | 1) => assert_eq!(of_nucleus, of_all),
            Some(2) => {
                assert_eq!(of_nucleus, None);
                edges += 1;
            }
            _ => {
                assert!(of_nucleus.is_none_or(|token| token < 2));
                others += 1;
            }
        }
    }
    assert!(edges > 20 && others > 20, "{edges}, {others}");
}

/// Of rows with and without ties, in any order of the list, of all and of those before one.
#[test]
#[expect(clippy::cast_precision_loss, reason = "small numbers")]
fn a_draw_is_the_best_of_all_scores_before_the_end() {
    for index in 0..500_usize {
        let noise = Draw { seed: 7, sequence: 0, index: index as u64 }.noise();
        let logit = |token: u32| match index % 4 {
            0 => 0.0,
            1 => (noise.bits(token) % 64) as f32 / 8.0,
            2 => token as f32 / 16.0,
            // The noise lies far below the last place: all scores tie.
            _ => 1e30,
        };
        let logits: Vec<f32> = (0..400).map(logit).collect();
        let mut list = RankedCandidates::new(ranked(&logits));
        for end in [None, Some(list.tokens()[index % 400])] {
            let left = list.tokens().iter().filter(|&&ranked| end.is_none_or(|end| ranked < end));
            let scored = left.map(|&ranked| (noise.score(ranked.token(), ranked.logit()), ranked));
            let mut scored: Vec<(f64, Ranked)> = scored.collect();
            scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.token().cmp(&b.1.token())));
            let expected = scored.first().map(|&(score, ranked)| (ranked, score));
            assert_eq!(list.draw(noise, end), expected);
            list.tokens.reverse();
            assert_eq!(list.draw(noise, end), expected);
        }
    }
    let noise = Draw::default().noise();
    assert_eq!(RankedCandidates::new(vec![]).draw(noise, None), None);
}

proptest! {
    #[test]
    fn a_ranked_token_gives_back_what_it_was_made_of(token: u32, logit in -1e30_f32..1e30) {
        let ranked = Ranked::new(token, logit);
        prop_assert_eq!((ranked.token(), ranked.logit()), (token, logit + 0.0));
    }

    #[test]
    fn top_k_is_a_full_sort_cut_after_the_ties(
        logits in vec((-3_i8..3).prop_map(f32::from), 1..40),
        count in 1..45_usize,
    ) {
        let mut sorted = ranked(&logits);
        sorted.sort_unstable();
        let last = sorted[count.min(sorted.len()) - 1].logit();
        let expected: Vec<_> = sorted.into_iter().filter(|token| token.logit() >= last).collect();
        for is_weighted in [false, true] {
            let mut list = RankedCandidates::new(ranked(&logits));
            if is_weighted {
                list.weighted();
            }
            list.keep_top_k(count);
            prop_assert_eq!(list.weighted().0, &expected);
        }
    }
}
