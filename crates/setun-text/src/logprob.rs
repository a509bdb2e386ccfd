//! Log-probabilities of tokens.

use std::collections::BinaryHeap;

use crate::ranked_candidates::Ranked;

/// The natural logarithms of the probabilities that softmax of the raw logits of a row gives
/// tokens, before any temperature, filter or penalty.
///
/// Summed in f64 in the order of the ids with `libm`'s functions, so they have the same bits
/// everywhere.
#[derive(Clone, Copy, Debug)]
pub struct Logprobs<'a> {
    logits: &'a [f32],
    best: f64,
    total: f64, // of exp(logit - best)
}

impl<'a> Logprobs<'a> {
    /// Of the logits `[vocab]` of a row.
    #[must_use]
    pub fn new(logits: &'a [f32]) -> Self {
        let best = f64::from(logits.iter().copied().fold(f32::NEG_INFINITY, f32::max));
        let total = logits.iter().map(|&logit| libm::exp(f64::from(logit) - best)).sum();
        Self { logits, best, total }
    }

    /// That of a token: at most 0. Negative infinity for a token that has no logit; NaN if a
    /// logit is NaN.
    #[must_use]
    pub fn of(&self, token: u32) -> f64 {
        let Some(&logit) = self.logits.get(token as usize) else { return f64::NEG_INFINITY };
        f64::from(logit) - self.best - libm::log(self.total)
    }

    /// Those of all tokens, `[vocab]`, rounded to f32. One that f32 does not reach is the least
    /// finite number.
    #[must_use]
    pub fn row(&self) -> Vec<f32> {
        let normaliser = libm::log(self.total);
        let of = |&logit: &f32| narrow(f64::from(logit) - self.best - normaliser);
        self.logits.iter().map(of).collect()
    }

    /// Those of the `count` likeliest tokens, or of all if there are fewer: the likeliest first,
    /// ties by the lower id.
    #[must_use]
    pub fn top(&self, count: usize) -> Vec<(u32, f64)> {
        let mut best = BinaryHeap::new(); // the worst of them on top
        for (token, &logit) in (0..=u32::MAX).zip(self.logits) {
            let ranked = Ranked::new(token, logit);
            if best.len() < count {
                best.push(ranked);
            } else if let Some(mut worst) = best.peek_mut()
                && ranked < *worst
            {
                *worst = ranked;
            }
        }
        let best = best.into_sorted_vec().into_iter().map(Ranked::token);
        best.map(|token| (token, self.of(token))).collect()
    }
}

/// To the nearest f32, which stays finite where the number is.
#[expect(clippy::cast_possible_truncation, reason = "rounded on purpose")]
fn narrow(x: f64) -> f32 {
    if x < f64::from(f32::MIN) && x.is_finite() { f32::MIN } else { x as f32 }
}

/// [`Logprobs::of`] a single token.
#[must_use]
pub fn logprob(logits: &[f32], token: u32) -> f64 {
    Logprobs::new(logits).of(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equals_a_distribution_known_by_hand() {
        // Probabilities 1/7, 2/7 and 4/7.
        let logits = [0.0, std::f32::consts::LN_2, 2.0 * std::f32::consts::LN_2];
        for (token, weight) in [(0, 1.0_f64), (1, 2.0), (2, 4.0)] {
            assert!((logprob(&logits, token) - (weight / 7.0).ln()).abs() < 1e-6);
        }
    }

    #[test]
    fn the_likeliest_come_first() {
        let logits = [0.5, 2.0, -1.0, 2.0, 3.0];
        let row = Logprobs::new(&logits);
        for count in 0..8 {
            let found = row.top(count);
            let ids: Vec<u32> = found.iter().map(|&(token, _)| token).collect();
            assert_eq!(ids, [4, 1, 3, 0, 2][..count.min(5)]);
            assert!(found.iter().all(|&(token, logprob)| logprob == row.of(token)));
        }
        let sum: f64 = row.top(5).iter().map(|&(_, logprob)| logprob.exp()).sum();
        assert!((sum - 1.0).abs() < 1e-12);
        assert!(Logprobs::new(&[]).top(3).is_empty());
    }

    #[test]
    #[expect(clippy::cast_possible_truncation, reason = "rounded on purpose")]
    fn a_row_has_them_all() {
        let logits = [0.5, 2.0, -1.0, 2.0, 3.0];
        let row = Logprobs::new(&logits);
        let expected: Vec<f32> = (0..5).map(|token| row.of(token) as f32).collect();
        assert_eq!(row.row(), expected);
        let far = Logprobs::new(&[3.0e38, -3.0e38]).row();
        assert_eq!(far, [0.0, f32::MIN], "finite, so that it can be added to");
        assert!(Logprobs::new(&[0.0, f32::NAN]).row()[0].is_nan());
    }

    #[test]
    fn does_not_overflow_and_knows_its_vocabulary() {
        let logits = [3.0e38, -3.0e38, 3.0e38];
        assert!((logprob(&logits, 0) + std::f64::consts::LN_2).abs() < 1e-12);
        assert_eq!(logprob(&logits, 1), 2.0 * f64::from(-3.0e38_f32) - std::f64::consts::LN_2);
        assert_eq!(logprob(&logits, 3), f64::NEG_INFINITY);
        assert!(logprob(&[0.0, f32::NAN], 0).is_nan());
    }
}
