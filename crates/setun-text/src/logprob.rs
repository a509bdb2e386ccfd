//! What the model thought of a token.

/// The natural logarithm of the probability that softmax of the raw `logits` gives `token`.
///
/// Before any temperature, filter or penalty. Summed in f64 in the order of the ids with
/// `libm`'s functions, so it has the same bits everywhere.
///
/// # Shapes
///
/// - `logits`: `[vocab]`.
///
/// # Result
///
/// At most 0. Negative infinity for a token that has no logit; NaN if a logit is NaN.
#[must_use]
pub fn logprob(logits: &[f32], token: u32) -> f64 {
    let Some(&logit) = logits.get(token as usize) else { return f64::NEG_INFINITY };
    let best = f64::from(logits.iter().copied().fold(f32::NEG_INFINITY, f32::max));
    let total: f64 = logits.iter().map(|&logit| libm::exp(f64::from(logit) - best)).sum();
    f64::from(logit) - best - libm::log(total)
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
    fn does_not_overflow_and_knows_its_vocabulary() {
        let logits = [3.0e38, -3.0e38, 3.0e38];
        assert!((logprob(&logits, 0) + std::f64::consts::LN_2).abs() < 1e-12);
        assert_eq!(logprob(&logits, 1), 2.0 * f64::from(-3.0e38_f32) - std::f64::consts::LN_2);
        assert_eq!(logprob(&logits, 3), f64::NEG_INFINITY);
        assert!(logprob(&[0.0, f32::NAN], 0).is_nan());
    }
}
