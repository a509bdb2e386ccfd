//! The one exponential function.
//!
//! `exp(x) = 2^n · e^r` with `n = round(x · log2 e)` and `r = x − n · ln 2` in two steps (the
//! upper part of ln 2 has few bits, so `n · LN2_HIGH` is exact). `e^r` is
//! `1 + r + r² · p(r)`, with the degree-5 polynomial `p` of the Cephes library's `expf`.
//!
//! Range: 0 below [`UNDERFLOW`] (where the result would be subnormal), +∞ above [`OVERFLOW`], NaN for NaN. In
//! between the error is at most [`MAX_ULP`] units in the last place, which a test measures
//! against `f64`. Only `+ − ×` and integer operations are used, so every target agrees.

/// Below this the result is 0: `ln(2^-126)`, rounded up.
pub const UNDERFLOW: f32 = -87.336_54;

/// Above this the result is +∞: where `n` would reach 128.
pub const OVERFLOW: f32 = 88.376_26;

/// Bound on the error between [`UNDERFLOW`] and [`OVERFLOW`].
pub const MAX_ULP: f32 = 1.0;

/// log2(e)
pub const LOG2_E: f32 = std::f32::consts::LOG2_E;
/// The first 9 bits of ln 2.
pub const LN2_HIGH: f32 = 0.693_359_4;
/// ln 2 − [`LN2_HIGH`]
pub const LN2_LOW: f32 = -2.121_944_4e-4;
/// Adding and subtracting it rounds a number below 2^22 to the nearest integer, ties to even.
pub const ROUND: f32 = 12_582_912.0;
/// Coefficients of `p`, highest power first (Cephes, `expf.c`).
pub const POLYNOMIAL: [f32; 6] =
    [1.987_569_2e-4, 1.398_2e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 5e-1];

/// `e^x` as described in the [module](self).
#[must_use]
pub fn exp(x: f32) -> f32 {
    if x.is_nan() {
        return x;
    }
    if x < UNDERFLOW {
        return 0.0;
    }
    if x > OVERFLOW {
        return f32::INFINITY;
    }
    let shifted = x * LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = (x - n * LN2_HIGH) - n * LN2_LOW;
    let mut p = POLYNOMIAL[0];
    for coefficient in &POLYNOMIAL[1..] {
        p = p * r + coefficient;
    }
    let mantissa = (p * (r * r) + r) + 1.0;
    // The low bits of `shifted` are n, as ROUND's own low bits are zero.
    let exponent = shifted.to_bits().wrapping_sub(ROUND.to_bits()).wrapping_add(127) << 23;
    mantissa * f32::from_bits(exponent)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every 97th float between the bounds: 22 million of them.
    #[test]
    #[expect(clippy::cast_possible_truncation, reason = "rounds to the nearest f32")]
    fn the_error_is_within_its_bound() {
        // An interpreter has patience for some hundreds of them.
        let step = if cfg!(miri) { 9_999_991 } else { 97 };
        let mut worst = 0.0f64;
        for bits in (0..=OVERFLOW.to_bits()).step_by(step) {
            for x in [f32::from_bits(bits), -f32::from_bits(bits)] {
                if !(UNDERFLOW..=OVERFLOW).contains(&x) {
                    continue;
                }
                let exact = libm::exp(f64::from(x));
                let rounded = exact as f32;
                let ulp = f64::from(f32::from_bits(rounded.to_bits() + 1)) - f64::from(rounded);
                worst = worst.max((f64::from(exp(x)) - exact).abs() / ulp);
            }
        }
        assert!(worst <= f64::from(MAX_ULP), "{worst} ULP");
    }

    #[test]
    fn the_ends_are_as_stated() {
        assert_eq!(exp(0.0).to_bits(), 1.0f32.to_bits());
        assert_eq!(exp(f32::NEG_INFINITY), 0.0);
        assert_eq!(exp(UNDERFLOW - 1e-4), 0.0);
        assert!(exp(UNDERFLOW) >= f32::MIN_POSITIVE);
        assert!(exp(OVERFLOW).is_finite());
        assert_eq!(exp(OVERFLOW + 1e-4), f32::INFINITY);
        assert!(exp(f32::NAN).is_nan());
    }
}
