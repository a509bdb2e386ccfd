//! Gumbel noise: a draw among tokens as the best of their noisy scores.
//!
//! ```text
//! score = f64(logit) + g      g = −ln(−ln(u))      u = (⌊bits / 2^12⌋ + ½) · 2^−52
//! ```
//!
//! Each token has noise of its own, a pure function of a key and the id. The token with the highest
//! score, of equal ones the lowest id, is distributed as the softmax of the logits (Gumbel,
//! "Statistical theory of extreme values", 1954; Maddison, Tarlow and Minka, "A* sampling",
//! NIPS 2014). A score depends on its own token alone, so bounds of logits are bounds of scores.

use std::f64::consts::LN_2;

/// 2^64 divided by the golden ratio, the increment of `SplitMix64`.
pub const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// 2^−52, the distance between two values of `u`.
const STEP: f64 = 1.0 / 4_503_599_627_370_496.0;

/// More than ln 2 by more than the rounding of two logarithms.
const ABOVE_LN_2: f64 = LN_2 * (1.0 + 1e-9);

/// The finaliser of `SplitMix64` (Steele, Lea and Flood, "Fast splittable pseudorandom number
/// generators", 2014): a bijection in which every input bit moves about half of the output bits.
#[must_use]
#[inline]
pub fn scramble(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// The noise of all tokens for one choice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Noise {
    key: u64,
}

impl Noise {
    /// The same key gives the same noise.
    #[must_use]
    pub fn new(key: u64) -> Self {
        Self { key }
    }

    /// What it was made from.
    #[must_use]
    pub fn key(self) -> u64 {
        self.key
    }

    /// The noise of the tokens from `first` on, counted from there.
    #[must_use]
    pub fn starting_at(self, first: u32) -> Self {
        Self { key: self.key.wrapping_add(u64::from(first).wrapping_mul(GOLDEN)) }
    }

    /// The random bits of a token: output number `token` of a `SplitMix64` with the key as seed.
    #[must_use]
    #[inline]
    pub fn bits(self, token: u32) -> u64 {
        scramble(self.key.wrapping_add((u64::from(token) + 1).wrapping_mul(GOLDEN)))
    }

    /// The score of a token: its logit and its noise. The higher the logit, the higher the score,
    /// or it is the same.
    #[must_use]
    #[inline(never)] // two logarithms, for few tokens
    pub fn score(self, token: u32, logit: f32) -> f64 {
        f64::from(logit) + gumbel(self.bits(token))
    }

    /// At least the score of a token, at a small part of its cost.
    #[must_use]
    #[inline]
    pub fn score_bound(self, token: u32, logit: f32) -> f64 {
        f64::from(logit) + gumbel_bound(self.bits(token))
    }
}

/// Whether a token and its score come before others: the higher score, of equal ones the lower id.
#[must_use]
pub fn precedes((token, score): (u32, f64), (other, other_score): (u32, f64)) -> bool {
    score > other_score || (score == other_score && token < other)
}

/// Noise from random bits, between −3.61 and 36.74. It does not fall as the bits rise.
///
/// 52 of the bits count, as with a half more than 53 of them `u` would be 1 at times.
#[must_use]
pub fn gumbel(bits: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "52 bits fit an f64 exactly")]
    let u = ((bits >> 12) as f64 + 0.5) * STEP;
    -libm::log(-libm::log(u))
}

/// At least [`gumbel`] of these bits, and at most 0.9 more where that lies between 1 and 36.
///
/// With `z` leading ones, `1 − u > 2^−(z+1)`; and as `−ln(u) ≥ 1 − u`, the noise is at most
/// `(z + 1) ln 2`.
#[must_use]
#[inline]
pub fn gumbel_bound(bits: u64) -> f64 {
    f64::from(bits.leading_ones() + 1) * ABOVE_LN_2
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first outputs of `SplitMix64` for two seeds, as its published C code prints them.
    #[test]
    fn bits_are_those_of_splitmix64() {
        assert_eq!(Noise::new(0).bits(0), 0xe220_a839_7b1d_cdaf);
        let found: Vec<u64> = (0..5).map(|token| Noise::new(1_234_567).bits(token)).collect();
        let expected = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn noise_is_finite_rises_with_the_bits_and_has_a_bound() {
        assert!((gumbel(0) + 3.603_78).abs() < 1e-4, "{}", gumbel(0));
        assert!((gumbel(u64::MAX) - 36.736_8).abs() < 1e-4, "{}", gumbel(u64::MAX));
        let edges = (0..64).flat_map(|shift| {
            let ones = !(u64::MAX >> shift);
            [ones.wrapping_sub(1), ones, ones + 1, !ones, u64::MAX - (1 << shift)]
        });
        let mut all: Vec<u64> = edges.chain((0..100_000).map(|n| Noise::new(1).bits(n))).collect();
        all.sort_unstable();
        for pair in all.windows(2) {
            assert!(gumbel(pair[0]) <= gumbel(pair[1]), "{pair:?}");
        }
        for bits in all {
            let (noise, bound) = (gumbel(bits), gumbel_bound(bits));
            assert!(noise.is_finite() && noise <= bound, "{bits:x}");
            assert!(
                !(1.0..36.0).contains(&noise) || bound < noise + 0.9,
                "{bits:x}: {noise}, {bound}"
            );
        }
    }

    /// Of the distribution's mean and variance: Euler's constant and π²/6.
    #[test]
    fn noise_follows_the_gumbel_distribution() {
        let noise = Noise::new(8);
        let values: Vec<f64> = (0..200_000).map(|token| gumbel(noise.bits(token))).collect();
        let mean = values.iter().sum::<f64>() / 200_000.0;
        let variance = values.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / 200_000.0;
        // Standard deviations of these estimates: 0.003 and 0.008.
        assert!((mean - 0.577_216).abs() < 0.015, "{mean}");
        assert!((variance - 1.644_934).abs() < 0.04, "{variance}");
    }
}
