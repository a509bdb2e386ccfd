//! Saturating conversions between integer types, and a scan of floats.

/// `count` as `u32`, or the largest `u32` where it is larger.
#[must_use]
pub fn to_u32(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Whether an element has an exponent of ones: is infinite or not a number. `exponents` are the bits of the exponents
/// in eight bytes of elements.
#[must_use]
pub fn not_all_finite<T: bytemuck::Pod>(values: &[T], exponents: u64) -> bool {
    // One more turns an exponent of ones, and no other, into a sign.
    let one = exponents & !(exponents << 1);
    let signs = exponents + one;
    let word = |bytes: [u8; 8]| (u64::from_ne_bytes(bytes) & exponents) + one;
    let (words, rest) = bytemuck::cast_slice::<T, u8>(values).as_chunks();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    // Without an early end the scan runs in vectors, and in words where there are none.
    words.iter().fold(word(last), |seen, bytes| seen | word(*bytes)) & signs != 0
}

#[cfg(test)]
mod tests {
    use half::{bf16, f16};

    use super::*;

    #[test]
    fn what_is_not_finite_is_seen_wherever_it_is() {
        fn check<T: bytemuck::Pod>(exponents: u64, finite: [T; 5], bad: [T; 3]) {
            for len in 0..20 {
                let clean: Vec<T> = finite.iter().copied().cycle().take(len).collect();
                assert!(!not_all_finite(&clean, exponents));
                for place in 0..len {
                    for bad in bad {
                        let mut values = clean.clone();
                        values[place] = bad;
                        assert!(not_all_finite(&values, exponents), "{place} of {len}");
                    }
                }
            }
        }
        let bad = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY];
        let finite = [f32::MAX, f32::MIN, f32::MIN_POSITIVE, -0.0, 1.0];
        check(0x7f80_0000_7f80_0000, finite, bad);
        let finite = [bf16::MAX, bf16::MIN, bf16::MIN_POSITIVE, bf16::NEG_ZERO, bf16::ONE];
        check(0x7f80_7f80_7f80_7f80, finite, bad.map(bf16::from_f32));
        let finite = [f16::MAX, f16::MIN, f16::MIN_POSITIVE, f16::NEG_ZERO, f16::ONE];
        check(0x7c00_7c00_7c00_7c00, finite, bad.map(f16::from_f32));
    }
}
