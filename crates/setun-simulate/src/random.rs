//! Random numbers of traces and of routing: one sequence for each seed, on every machine.

use crate::hash::mix;

/// `SplitMix64` (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
#[derive(Clone, Debug)]
pub(crate) struct Random {
    state: u64,
}

impl Random {
    /// The sequence of a seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Sixty-four random bits.
    pub(crate) fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.state)
    }

    /// A number of at least 0 and below 1.
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
    pub(crate) fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// An integer below `end`, which is above 0. The bias is below `end` / 2^64.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        u64::try_from((u128::from(self.bits()) * u128::from(end)) >> 64).unwrap_or(0)
    }

    /// A time between events of a Poisson process with this mean.
    pub(crate) fn exponential(&mut self, mean: f64) -> f64 {
        -libm::log(1.0 - self.unit()) * mean
    }

    /// An integer from half of `mean` to one and a half of it, at least 1.
    pub(crate) fn around(&mut self, mean: u32) -> u32 {
        let half = u64::from(mean / 2);
        let number = u64::from(mean) - half + self.below(2 * half + 1);
        u32::try_from(number).unwrap_or(u32::MAX).max(1)
    }
}

/// Ranks by Zipf's law: the rank `k`, from 0 on, has a weight of `1 / (k + 1)`.
#[derive(Clone, Debug)]
pub(crate) struct Zipf {
    sums: Vec<f64>, // of the weights up to each rank
}

impl Zipf {
    /// The law over this many ranks; at least 1.
    pub(crate) fn new(ranks: u32) -> Self {
        let mut sum = 0.0;
        let weights = (1..=ranks.max(1)).map(|rank| 1.0 / f64::from(rank));
        Self {
            sums: weights
                .map(|weight| {
                    sum += weight;
                    sum
                })
                .collect(),
        }
    }

    /// A rank.
    pub(crate) fn draw(&self, random: &mut Random) -> usize {
        let all = self.sums.last().copied().unwrap_or(1.0);
        let at = random.unit() * all;
        self.sums.partition_point(|&sum| sum <= at).min(self.sums.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first outputs for the seed 1234567, as published with the generator's C source.
    #[test]
    fn the_generator_is_the_published_one() {
        let mut random = Random::new(1_234_567);
        let expected = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973];
        assert_eq!([random.bits(), random.bits()], expected);
    }

    #[test]
    fn draws_have_their_means() {
        let (mut random, count) = (Random::new(1), 20_000);
        let sum: f64 = (0..count).map(|_| random.exponential(3.0)).sum();
        assert!((sum / f64::from(count) - 3.0).abs() < 0.1, "{sum}");
        let sum: u32 = (0..count).map(|_| random.around(100)).sum();
        assert!((f64::from(sum) / f64::from(count) - 100.0).abs() < 1.0, "{sum}");
        assert!((0..count).all(|_| (1..=1).contains(&random.around(1))));
    }

    #[test]
    fn the_first_rank_is_twice_as_frequent_as_the_second() {
        let (zipf, mut random) = (Zipf::new(8), Random::new(2));
        let mut counts = [0.0; 8];
        for _ in 0..50_000 {
            counts[zipf.draw(&mut random)] += 1.0;
        }
        assert!((counts[0] / counts[1] - 2.0_f64).abs() < 0.1, "{counts:?}");
        assert!((counts[0] / counts[7] - 8.0_f64).abs() < 0.6, "{counts:?}");
    }
}
