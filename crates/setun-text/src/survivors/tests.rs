//! Lists of survivors against full sorts.

use proptest::{collection::vec, prelude::*};

use super::*;

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
        let mut list = Survivors::new(ranked(&[0.0, 2.0 * ln_2, 0.0, ln_2]));
        list.keep_top_p(share);
        ids(list.tokens())
    };
    let all = [1, 3, 0, 2];
    let shares = [(0.0, 1), (0.49, 1), (0.51, 2), (0.74, 2), (0.76, 3), (1.0, 4)];
    for (share, count) in shares {
        assert_eq!(kept(share), all[..count], "{share}");
    }
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
            let mut list = Survivors::new(ranked(&logits));
            if is_weighted {
                list.weighted();
            }
            list.keep_top_k(count);
            prop_assert_eq!(list.weighted().0, &expected);
        }
    }
}
