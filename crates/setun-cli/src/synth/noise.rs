//! Random numbers by place instead of by order.

/// Odd, and near 2^64 divided by the golden ratio, so that counters spread over all bits.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Sixty-four random bits, a pure function of a key and a counter (`SplitMix64` by Steele, Lea
/// and Flood, "Fast splittable pseudorandom number generators", 2014).
#[inline]
pub(crate) fn noise(key: u64, counter: u64) -> u64 {
    let mut bits = key.wrapping_add(counter.wrapping_add(1).wrapping_mul(STEP));
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// A number from 0 up to 1, without 1.
#[expect(clippy::cast_precision_loss, reason = "53 bits are exact")]
pub(crate) fn share(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first outputs of `SplitMix64` for the seed 1234567, as published with its C source.
    #[test]
    fn agrees_with_the_published_generator() {
        let published = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        for (counter, expected) in published.into_iter().enumerate() {
            assert_eq!(noise(1_234_567, counter as u64), expected);
        }
    }

    #[test]
    fn shares_are_even() {
        let low = (0..10_000).filter(|&counter| share(noise(7, counter)) < 0.25).count();
        assert!((2_300..2_700).contains(&low), "{low}");
    }
}
