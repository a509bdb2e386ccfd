//! A bound of the weights of all tokens that a request does not name.

use std::f32::consts::LOG2_E;

use setun_ops::top_logits::{Ranked, TopLogitsRequest};

/// Weights that are added side by side.
const LANES: usize = 4;

/// Weights whose sum is one of `f32`.
const BLOCK: usize = 256 * LANES;

/// More than what roundings can take away. A power of two is off by 2⁻¹⁵ of itself at most, as 126 is
/// rounded to 2⁻¹⁸ and thrice by 2⁻²⁴; 260 sums take 2⁻¹⁵ at most, the last conversion 2⁻²⁴.
const ROUNDINGS: f64 = 1.0 + 1e-4;

/// Writes the sum behind the tokens of a ranked row, where it is requested. `upper` has the logit or a
/// bound of it for each token; those that the request names are left out of it.
#[expect(clippy::cast_possible_truncation, reason = "there is room in the margin")]
pub(super) fn write(request: &TopLogitsRequest, upper: &mut [f32], out: &mut [Ranked]) {
    let Some(noisy) = request.noise.filter(|_| request.sum) else { return };
    let behind = request.touched.len() + request.k;
    let best = out[behind];
    if !best.is_token() {
        return;
    }
    for &token in &request.touched {
        upper[token as usize] = f32::NEG_INFINITY;
    }
    let logit = (sum(upper, best.logit, noisy.temperature) * ROUNDINGS) as f32;
    out[behind + request.top] = Ranked { token: Ranked::SUM, logit };
}

/// At least the sum of the weights but for roundings. No weight is above 1 by more than roundings: what
/// is no candidate has an upper bound below the best logit.
fn sum(logits: &[f32], best: f32, temperature: f32) -> f64 {
    let best = best / temperature;
    let weight = |logit: f32| power((logit / temperature - best) * LOG2_E);
    let block = |logits: &[f32]| {
        let (lanes, rest) = logits.as_chunks::<LANES>();
        let mut sums = [0.0; LANES];
        for logits in lanes {
            for (sum, &logit) in sums.iter_mut().zip(logits) {
                *sum += weight(logit);
            }
        }
        for &logit in rest {
            sums[0] += weight(logit);
        }
        f64::from(sums.into_iter().sum::<f32>())
    };
    logits.chunks(BLOCK).map(block).sum()
}

/// At least 2 to this power, and at most 1.07 times that from 2^−126 on: the straight line between whole
/// powers. The exponent is below 128.
#[expect(clippy::cast_possible_truncation, reason = "whole, and small enough")]
fn power(exponent: f32) -> f32 {
    let biased = exponent.max(-126.0) + 127.0;
    f32::from_bits(((biased * 8_388_608.0) as i32).cast_unsigned()) // 2^23, the bits of a fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_are_bounded_from_above_and_near() {
        for step in -130 * 64..=127 * 64_i16 {
            let exponent = f32::from(step) / 64.0;
            let (found, exact) = (f64::from(power(exponent)), f64::from(exponent).exp2());
            let is_near = found <= exact * 1.07 || exponent < -126.0;
            assert!(found >= exact && is_near, "2^{exponent}: {found}");
        }
        assert_eq!(power(f32::NEG_INFINITY), f32::MIN_POSITIVE);
    }
}
