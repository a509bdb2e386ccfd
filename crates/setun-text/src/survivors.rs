//! The tokens that are left to choose from.

/// A token and its logit in one integer whose ascending order is the sampler's order: higher
/// logits first, ties by the lower id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ranked(u64);

impl Ranked {
    /// `logit` is finite; −0 and 0 count as equal.
    pub(crate) fn new(token: u32, logit: f32) -> Self {
        let bits = (logit + 0.0).to_bits();
        let ascending = if bits >> 31 == 0 { bits | 1 << 31 } else { !bits };
        Self(u64::from(!ascending) << 32 | u64::from(token))
    }

    /// The id.
    #[expect(clippy::cast_possible_truncation, reason = "the low half is the id")]
    pub(crate) fn token(self) -> u32 {
        self.0 as u32
    }

    /// The logit.
    pub(crate) fn logit(self) -> f32 {
        let ascending = !self.rank();
        f32::from_bits(if ascending >> 31 == 1 { ascending & !(1 << 31) } else { !ascending })
    }

    /// Equal for equal logits, smaller for higher ones.
    fn rank(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

/// Leaves the `count` best tokens and all that tie with the last of them, in any order.
///
/// Linear in the number of tokens: nothing is sorted.
pub(crate) fn keep_top_k(tokens: &mut Vec<Ranked>, count: usize) {
    if count == 0 || count >= tokens.len() {
        return;
    }
    let (_, last, _) = tokens.select_nth_unstable(count - 1);
    let last = last.rank();
    tokens.retain(|token| token.rank() <= last);
}

/// Far more than the rounding of a logarithm.
pub(crate) const MARGIN: f64 = 0.01;

/// Drops tokens that are sure to have less than `share` of the best one's weight, so that
/// fewer are sorted. Some that have less may stay.
pub(crate) fn drop_below(tokens: &mut Vec<Ranked>, share: f32) {
    let Some(best) = tokens.iter().min().filter(|_| share > 0.0) else { return };
    let least = least_logit(best.logit(), share);
    tokens.retain(|token| f64::from(token.logit()) >= least);
}

/// A logit below this is sure to have less than `share` of the weight of the best one.
pub(crate) fn least_logit(best: f32, share: f32) -> f64 {
    f64::from(best) + libm::log(f64::from(share)) - MARGIN
}

/// Leaves tokens as long as those before them have less than `share` of the whole weight.
///
/// `weighted` is sorted. The first always stays.
pub(crate) fn keep_top_p(weighted: &mut Vec<(Ranked, f64)>, share: f64) {
    let total: f64 = weighted.iter().map(|&(_, weight)| weight).sum();
    let mut before = 0.0;
    let count = weighted
        .iter()
        .take_while(|&&(_, weight)| {
            let stays = before < share * total;
            before += weight;
            stays
        })
        .count();
    weighted.truncate(count.max(1));
}

#[cfg(test)]
mod tests {
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
        let weights = [4.0, 2.0, 1.0, 1.0];
        let kept = |share| {
            let mut weighted: Vec<_> =
                ranked(&[3.0, 2.0, 1.0, 1.0]).into_iter().zip(weights).collect();
            keep_top_p(&mut weighted, share);
            weighted.len()
        };
        assert_eq!(
            [kept(0.0), kept(0.5), kept(0.51), kept(0.75), kept(0.76), kept(1.0)],
            [1, 1, 2, 2, 3, 4]
        );
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
            let mut kept = ranked(&logits);
            keep_top_k(&mut kept, count);
            kept.sort_unstable();
            prop_assert_eq!(kept, expected);
        }
    }
}
