//! `top_logits`: the exact logits of the best tokens, and of some that are requested by id.
//!
//! A row requests the logits of its `touched` tokens and of the `k` best of all others, by
//! (logit descending, id ascending), −0 and 0 being equal; with `within`, for fewer where the
//! logit lies below `best − within`, `best` being that of the best of those others. Logits are
//! those of [`head`](crate::head), the difference is one of `f32`. With `noise`, the others are
//! ranked by (score descending, id ascending) instead, the score being that of the logit divided by
//! the temperature in `f32`, see [`noise`](crate::noise); the `top` best of the same others by
//! logit follow them. A row of the result is
//!
//! ```text
//! touched, in their order | the k best others, best first | the top best others | the sum | padding up to the capacity
//! ```
//!
//! With `sum`, the entry [`Ranked::SUM`] bounds the weights of the same others from above: its value is no
//! less than *Σ exp(l/T − b/T)*, where *T* is the temperature, *b* the highest of their logits *l*, and
//! quotients are those of `f32`. It alone may differ from device to device, as long as it is a bound.
//!
//! A row with a logit beyond ±[`MAX_LOGIT`], infinities and NaN included, is not ranked: all of
//! it is padding. So who reads a ranked row knows that the logits that are not in it are finite
//! too; who reads one that is not takes all logits to see why.

use bytemuck::{Pod, Zeroable};

use crate::{dense::DenseMatrix, head::head_logit, noise::Noise, op::Agreement};

/// See [`Agreement`]. What is ranked are the logits, and a GPU's may differ.
pub const AGREEMENT: Agreement = Agreement::ExactOnCpu { gpu_ulp: 16 };

/// The largest magnitude of a logit in a ranked row: 2^64.
pub const MAX_LOGIT: f32 = 18_446_744_073_709_551_616.0;

/// A token and its logit.
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct Ranked {
    /// The id; `u32::MAX` in padding, [`SUM`](Self::SUM) in the entry behind the tokens.
    pub token: u32,
    /// Its logit; −∞ in padding.
    pub logit: f32,
}

impl Ranked {
    /// What fills a row up.
    pub const PADDING: Self = Self { token: u32::MAX, logit: f32::NEG_INFINITY };

    /// What stands for an id where the logit is a bound of the sum of weights.
    pub const SUM: u32 = u32::MAX - 1;

    /// Whether it is a token or the sum, not padding.
    #[must_use]
    pub fn is_token(self) -> bool {
        self.token != Self::PADDING.token
    }
}

impl Default for Ranked {
    fn default() -> Self {
        Self::PADDING
    }
}

/// Scores to rank tokens by instead of their logits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NoisyScores {
    /// The noise of each token.
    pub noise: Noise,
    /// What logits are divided by; above 0, and so that no ranked logit overflows.
    pub temperature: f32,
}

impl NoisyScores {
    /// The score of a token. It does not fall as the logit rises.
    #[must_use]
    pub fn score(self, token: u32, logit: f32) -> f64 {
        self.noise.score(token, logit / self.temperature)
    }

    /// At least the score of a token, at a small part of its cost.
    #[must_use]
    #[inline]
    pub fn score_bound(self, token: u32, logit: f32) -> f64 {
        self.noise.score_bound(token, logit / self.temperature)
    }

    /// Whether the temperature is one to divide ranked logits by.
    #[must_use]
    pub fn is_valid(self) -> bool {
        self.temperature > 0.0 && (MAX_LOGIT / self.temperature).is_finite()
    }
}

/// What a row requests.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TopLogitsRequest {
    /// How many of the tokens that are not touched; at least 1.
    pub k: usize,
    /// How far below the best of them the others may lie; 0 or more. None with `noise`.
    pub within: Option<f32>,
    /// What the others are ranked by, if not by their logits.
    pub noise: Option<NoisyScores>,
    /// How many of the best by logit follow the `k`, which may be the same tokens; 0 without `noise`.
    pub top: usize,
    /// Whether a bound of the sum of the others' weights follows; only with `top`.
    pub sum: bool,
    /// Ids whose logits are requested in any case, ascending.
    pub touched: Vec<u32>,
}

impl TopLogitsRequest {
    /// Entries of a ranked row: the capacity that it needs.
    #[must_use]
    pub fn entries(&self) -> usize {
        self.touched.len() + self.k + self.top + usize::from(self.sum)
    }

    /// The least logit that is requested, where the best of the tokens that are not touched has
    /// this one.
    #[must_use]
    pub fn least(&self, best: f32) -> f32 {
        self.within.map_or(f32::NEG_INFINITY, |within| best - within)
    }
}

/// Whether a row with this logit can be ranked.
#[must_use]
pub fn can_rank(logit: f32) -> bool {
    logit.abs() <= MAX_LOGIT
}

/// One row of the result: `[capacity]`. `x` is `[hidden]`.
///
/// # Panics
///
/// If the request exceeds the table or `out`, or a length differs from the table's columns.
pub fn top_logits_row(
    table: &DenseMatrix,
    x: &[f32],
    request: &TopLogitsRequest,
    out: &mut [Ranked],
) {
    let mut scratch = vec![0.0; x.len()];
    out.fill(Ranked::PADDING);
    let all: Vec<Ranked> = (0..=u32::MAX)
        .zip(0..table.rows())
        .map(|(id, token)| Ranked { token: id, logit: head_logit(table, token, x, &mut scratch) })
        .collect();
    if !all.iter().all(|ranked| can_rank(ranked.logit)) {
        return;
    }
    let (touched, best) = out.split_at_mut(request.touched.len());
    for (out, &token) in touched.iter_mut().zip(&request.touched) {
        *out = all[token as usize];
    }
    let (best, top) = best.split_at_mut(request.k);
    let is_other = |ranked: &&Ranked| request.touched.binary_search(&ranked.token).is_err();
    let others: Vec<Ranked> = all.iter().filter(is_other).copied().collect();
    let by_logit = sorted(others, &|ranked| f64::from(ranked.logit));
    top.iter_mut().zip(&by_logit).take(request.top).for_each(|(out, ranked)| *out = *ranked);
    if let (true, Some(noisy), Some(out)) = (request.sum, request.noise, top.get_mut(request.top)) {
        *out = Ranked { token: Ranked::SUM, logit: sum_of_weights(&by_logit, noisy.temperature) };
    }
    let others = match request.noise {
        Some(noisy) => sorted(by_logit, &|ranked| noisy.score(ranked.token, ranked.logit)),
        None => by_logit,
    };
    let least = request.least(others[0].logit);
    let asked = others.iter().take(request.k).filter(|ranked| ranked.logit >= least);
    best.iter_mut().zip(asked).for_each(|(out, ranked)| *out = *ranked);
}

/// The weights of ranked tokens relative to the first, in sum, rounded up.
#[expect(clippy::cast_possible_truncation, reason = "rounded up afterwards")]
fn sum_of_weights(ranked: &[Ranked], temperature: f32) -> f32 {
    let logit = |ranked: &Ranked| f64::from(ranked.logit / temperature);
    let best = ranked.first().map_or(0.0, logit);
    let sum: f64 = ranked.iter().map(|ranked| libm::exp(logit(ranked) - best)).sum();
    (sum as f32).next_up()
}

/// The highest score first, of equal ones the smaller id; −0 becomes 0 to be compared.
fn sorted(mut tokens: Vec<Ranked>, score: &dyn Fn(Ranked) -> f64) -> Vec<Ranked> {
    let score = |ranked: &Ranked| score(*ranked) + 0.0;
    tokens.sort_unstable_by(|a, b| score(b).total_cmp(&score(a)).then(a.token.cmp(&b.token)));
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dense::DenseValues;

    fn ranked(logits: &[f32], k: usize, touched: &[u32]) -> Vec<Ranked> {
        ranked_within(logits, &TopLogitsRequest { k, touched: touched.to_vec(), ..<_>::default() })
    }

    fn ranked_within(logits: &[f32], request: &TopLogitsRequest) -> Vec<Ranked> {
        let table = DenseMatrix::new(logits.len(), 1, DenseValues::F32(logits.to_vec().into()))
            .expect("a table");
        let mut out = vec![Ranked { token: 7, logit: 7.0 }; 5];
        top_logits_row(&table, &[1.0], request, &mut out);
        out
    }

    fn pair(token: u32, logit: f32) -> Ranked {
        Ranked { token, logit }
    }

    #[test]
    fn touched_first_then_the_best_others_and_padding() {
        let found = ranked(&[0.5, 3.0, -1.0, 3.0, 9.0], 2, &[2, 4]);
        let expected = [pair(2, -1.0), pair(4, 9.0), pair(1, 3.0), pair(3, 3.0), Ranked::PADDING];
        assert_eq!(found, expected);
    }

    #[test]
    fn others_may_lie_so_far_below_the_best_of_them() {
        let found = |within, touched: Vec<u32>| {
            let within = Some(within);
            let request = TopLogitsRequest { k: 3, within, touched, ..<_>::default() };
            let found = ranked_within(&[0.5, 3.0, 1.0, 9.0, -2.0], &request);
            found.into_iter().filter(|found| found.is_token()).collect::<Vec<_>>()
        };
        assert_eq!(found(0.0, vec![]), [pair(3, 9.0)]);
        assert_eq!(found(6.0, vec![]), [pair(3, 9.0), pair(1, 3.0)], "the bound belongs to it");
        assert_eq!(found(100.0, vec![]), [pair(3, 9.0), pair(1, 3.0), pair(2, 1.0)], "k at most");
        let expected = [pair(3, 9.0), pair(4, -2.0), pair(1, 3.0), pair(2, 1.0)];
        let [first, second, ..] = expected;
        assert_eq!(found(2.0, vec![3, 4]), expected, "touched ones do not count");
        assert_eq!(found(1.5, vec![3, 4]), [first, second, pair(1, 3.0)]);
    }

    #[test]
    fn others_may_be_ranked_by_noisy_scores() {
        let logits = [0.5, 3.0, 1.0, 9.0, -2.0];
        let mut first = [0; 5];
        for key in 0..4000 {
            let noisy = NoisyScores { noise: Noise::new(key), temperature: 2.0 };
            let request =
                TopLogitsRequest { k: 4, noise: Some(noisy), touched: vec![3], ..<_>::default() };
            let found = ranked_within(&logits, &request);
            let score = |ranked: &Ranked| noisy.noise.score(ranked.token, ranked.logit / 2.0);
            let both = TopLogitsRequest { k: 1, top: 2, ..request };
            let expected = [pair(3, 9.0), found[1], pair(1, 3.0), pair(2, 1.0), Ranked::PADDING];
            assert_eq!(ranked_within(&logits, &both), expected);
            assert_eq!(found[0], pair(3, 9.0));
            assert!(found[1..].is_sorted_by(|a, b| score(a) > score(b)), "{found:?}");
            assert!(found.iter().all(|ranked| logits[ranked.token as usize] == ranked.logit));
            first[found[1].token as usize] += 1;
        }
        // Weights exp(0.25), exp(1.5), exp(0.5), exp(-1): shares of 0.165, 0.576, 0.212 and 0.047.
        assert!((2150..2500).contains(&first[1]) && (730..1000).contains(&first[2]), "{first:?}");
    }

    #[test]
    fn a_bound_of_the_weights_of_the_others_follows() {
        let logits = [0.5, 3.0, 1.0, 9.0, -2.0];
        let noise = Some(NoisyScores { noise: Noise::new(1), temperature: 2.0 });
        let request =
            TopLogitsRequest { k: 1, noise, top: 1, sum: true, touched: vec![3], ..<_>::default() };
        assert_eq!(request.entries(), 4);
        let found = ranked_within(&logits, &request);
        assert_eq!((found[2], found[4]), (pair(1, 3.0), Ranked::PADDING));
        // 1 + exp(-1) + exp(-1.25) + exp(-2.5)
        let sum = 1.736_469_f32;
        assert!(found[3].token == Ranked::SUM && found[3].is_token());
        assert!((sum..sum + 1e-6).contains(&found[3].logit), "{found:?}");
    }

    #[test]
    fn a_row_with_a_logit_that_is_too_large_is_padding() {
        for bad in [f32::NAN, f32::NEG_INFINITY, f32::INFINITY, -MAX_LOGIT * 2.0] {
            assert_eq!(ranked(&[1.0, bad], 1, &[]), [Ranked::PADDING; 5]);
        }
        assert_eq!(ranked(&[1.0, -MAX_LOGIT], 1, &[])[0], pair(0, 1.0));
    }
}
