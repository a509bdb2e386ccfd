//! Random numbers without a state.

use setun_ops::noise::{GOLDEN, Noise, scramble};

/// Which draw this is: a random number is a pure function of these, so it stays the same
/// however sequences are batched, paused or replayed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Draw {
    /// The seed of the generation.
    pub seed: u64,
    /// Which sequence of that generation.
    pub sequence: u64,
    /// Which generated token of the sequence, from 0.
    pub index: u64,
}

impl Draw {
    /// A number in `0.0..1.0`, a multiple of 2⁻⁵³, for draw `number` of this token.
    ///
    /// Number 0 is free for a custom strategy; XTC takes number 1, and of number 2 the noise
    /// of a choice is made.
    /// The four integers are absorbed one after the other, each by one step of `SplitMix64`
    /// (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014): add
    /// the golden ratio and the integer to the state, then scramble it. So draws that differ
    /// in one integer only are as unrelated as the outputs of that generator.
    #[must_use]
    pub fn uniform(self, number: u64) -> f64 {
        let bits = absorbed([self.seed, self.sequence, self.index, number]);
        #[expect(clippy::cast_precision_loss, reason = "53 bits fit an f64 exactly")]
        let fraction = (bits >> 11) as f64;
        fraction * STEP
    }

    /// The noise of all tokens at this choice.
    pub(crate) fn noise(self) -> Noise {
        Noise::new(absorbed([self.seed, self.sequence, self.index, NOISE]))
    }
}

/// The number of the draw that makes noise.
const NOISE: u64 = 2;

/// 2⁻⁵³, the distance between two results.
const STEP: f64 = 1.0 / 9_007_199_254_740_992.0;

/// A number that follows from these integers, taken one after the other.
pub(crate) fn absorbed(parts: impl IntoIterator<Item = u64>) -> u64 {
    let absorb = |state: u64, part| scramble(state.wrapping_add(GOLDEN).wrapping_add(part));
    parts.into_iter().fold(0, absorb)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pins the whole function: a change would change every generation with a seed.
    #[test]
    fn known_draws_stay_what_they_are() {
        let draw = Draw { seed: 42, sequence: 1, index: 7 };
        let moved = [
            draw,
            Draw { seed: 43, ..draw },
            Draw { sequence: 2, ..draw },
            Draw { index: 8, ..draw },
        ];
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole steps")]
        let found: Vec<u64> = moved.iter().map(|draw| (draw.uniform(0) / STEP) as u64).collect();
        assert_eq!(found, KNOWN);
        assert_ne!(draw.uniform(0), draw.uniform(1));
    }

    /// In units of 2⁻⁵³, computed with Python's integers.
    const KNOWN: [u64; 4] =
        [5_891_759_107_454_059, 115_692_140_000_867, 1_939_585_442_069_683, 8_257_889_128_680_996];

    #[test]
    fn draws_are_uniform_along_every_integer() {
        let along: [fn(u64) -> Draw; 3] = [
            |n| Draw { seed: n, sequence: 0, index: 0 },
            |n| Draw { seed: 1, sequence: n, index: 3 },
            |n| Draw { seed: 2, sequence: 5, index: n },
        ];
        for draw in along {
            let mut counts = [0_u32; 64];
            for n in 0..64_000 {
                let value = draw(n).uniform(0);
                assert!((0.0..1.0).contains(&value));
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "0..64"
                )]
                let bin = (value * 64.0) as usize;
                counts[bin] += 1;
            }
            // 63 degrees of freedom: a fair source exceeds 120 once in about 50,000 runs.
            let distance: f64 =
                counts.iter().map(|&count| (f64::from(count) - 1000.0).powi(2) / 1000.0).sum();
            assert!(distance < 120.0, "chi-square {distance}");
        }
    }

    #[test]
    fn neighbouring_draws_are_not_correlated() {
        let values: Vec<f64> =
            (0..20_000).map(|index| Draw { seed: 9, sequence: 0, index }.uniform(0)).collect();
        let covariance: f64 =
            values.windows(2).map(|pair| (pair[0] - 0.5) * (pair[1] - 0.5)).sum::<f64>() / 20_000.0;
        // The standard deviation of this mean is 1/12/√20000 ≈ 0.0006.
        assert!(covariance.abs() < 0.003, "covariance {covariance}");
    }
}
