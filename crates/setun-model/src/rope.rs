//! Frequencies of the rotary position embedding, as transformers computes them.

use std::f32::consts::PI;

use setun_checkpoint::config::{RopeConfig, RopeScaling};
use setun_ops::{OpsError, rope_append::RopeTable};

/// Cosines and sines of the positions `0..positions`.
///
/// # Errors
///
/// If an angle is not finite, or there is no memory for the table.
pub fn table(rope: &RopeConfig, positions: usize) -> Result<RopeTable, OpsError> {
    let factor = match rope.scaling {
        RopeScaling::Default | RopeScaling::Llama3 { .. } => 1.0,
        RopeScaling::Yarn { attention_factor: Some(factor), .. } => factor,
        RopeScaling::Yarn { factor, .. } if factor <= 1.0 => 1.0,
        RopeScaling::Yarn { factor, .. } => round(0.1 * libm::log(f64::from(factor)) + 1.0),
    };
    RopeTable::scaled(positions, &inverse_frequencies(rope), factor)
}

/// Inverse frequencies `[dimensions / 2]`: `1 / theta^(2i / dimensions)`, rescaled where the
/// configuration says so.
///
/// Base and exponent are rounded to `f32`; the power is taken in `f64` and rounded.
#[must_use]
pub fn inverse_frequencies(rope: &RopeConfig) -> Vec<f32> {
    let head_dim = rope.dimensions;
    let theta = f64::from(round(rope.theta));
    (0..head_dim / 2)
        .map(|i| {
            let exponent = to_f32(2 * i) / to_f32(head_dim);
            let frequency = round(libm::pow(theta, f64::from(exponent)));
            match rope.scaling {
                RopeScaling::Default => 1.0 / frequency,
                RopeScaling::Llama3 { .. } => llama3(1.0 / frequency, &rope.scaling),
                RopeScaling::Yarn { factor, .. } => {
                    let kept = 1.0 - yarn_share(rope, head_dim, i);
                    1.0 / (factor * frequency) * (1.0 - kept) + 1.0 / frequency * kept
                }
            }
        })
        .collect()
}

/// How much of pair `i` `YaRN` slows down, 0 to 1.
fn yarn_share(rope: &RopeConfig, head_dim: usize, i: usize) -> f32 {
    let RopeScaling::Yarn { beta_fast, beta_slow, original_context, .. } = rope.scaling else {
        return 0.0;
    };
    let dim = f64::from(to_f32(head_dim));
    // The pair that turns so often within the original context.
    let pair = |turns: f32| {
        let context = f64::from(to_f32(original_context));
        let wavelength = context / (f64::from(turns) * 2.0 * std::f64::consts::PI);
        dim * libm::log(wavelength) / (2.0 * libm::log(rope.theta))
    };
    let low = pair(beta_fast).floor().max(0.0);
    let high = pair(beta_slow).ceil().min(dim - 1.0);
    let high = if low == high { high + 0.001 } else { high };
    ((to_f32(i) - round(low)) / round(high - low)).clamp(0.0, 1.0)
}

/// Llama 3.1's rule: short wavelengths stay, long ones are divided by `factor`, and those in
/// between pass smoothly from one to the other.
///
/// A number divided by a tensor is, in torch, the number times the reciprocal.
fn llama3(inverse: f32, scaling: &RopeScaling) -> f32 {
    let RopeScaling::Llama3 { factor, low_freq_factor, high_freq_factor, original_context } =
        *scaling
    else {
        return inverse;
    };
    let context = to_f32(original_context);
    let wavelength = (1.0 / inverse) * (2.0 * PI);
    if wavelength < context / high_freq_factor {
        inverse
    } else if wavelength > context / low_freq_factor {
        inverse / factor
    } else {
        let smooth =
            ((1.0 / wavelength) * context - low_freq_factor) / (high_freq_factor - low_freq_factor);
        (1.0 - smooth) * inverse / factor + smooth * inverse
    }
}

#[expect(clippy::cast_precision_loss, reason = "as transformers: float arithmetic")]
fn to_f32(x: usize) -> f32 {
    x as f32
}

#[expect(clippy::cast_possible_truncation, reason = "rounds to the nearest f32")]
fn round(x: f64) -> f32 {
    x as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn yarn(dimensions: usize, original_context: usize) -> RopeConfig {
        let (factor, beta_fast, beta_slow) = (4.0, 32.0, 1.0);
        let attention_factor = None;
        let scaling =
            RopeScaling::Yarn { factor, beta_fast, beta_slow, original_context, attention_factor };
        RopeConfig { theta: 1e6, dimensions, scaling }
    }

    /// Pairs that stay, that are slowed down in part, and by the factor, as transformers 5.23.0
    /// has them; the first configuration is that of Ternary-Bonsai 8B.
    #[test]
    fn yarn_is_that_of_transformers() {
        let bonsai = [
            (0, 1.0),
            (20, 0.013_335_215),
            (24, 0.004_631_046),
            (28, 0.001_534_418_4),
            (32, 0.000_470_588_22),
            (36, 0.000_124_028_39),
            (40, 4.445_698_5e-5),
            (63, 3.102_344_4e-7),
        ];
        let short = [(0, 1.0), (1, 0.477_990_12), (3, 0.097_805_366), (6, 0.007_905_695)];
        for (head_dim, context, pairs) in [(128, 16_384, &bonsai[..]), (48, 64, &short)] {
            let found = inverse_frequencies(&yarn(head_dim, context));
            assert_eq!(found.len(), head_dim / 2);
            for &(pair, expected) in pairs {
                let error = (found[pair] - expected).abs();
                assert!(error <= 1e-6 * expected, "{pair} of {head_dim}: {}", found[pair]);
            }
        }
        let table = table(&yarn(48, 64), 2).expect("a table");
        assert_eq!(table.at(0), (&[1.138_629_4; 24][..], &[0.0; 24][..]));
    }

    #[test]
    fn a_factor_of_attention_may_be_given() {
        let mut rope = yarn(48, 64);
        if let RopeScaling::Yarn { attention_factor, .. } = &mut rope.scaling {
            *attention_factor = Some(2.0);
        }
        assert_eq!(table(&rope, 1).expect("a table").at(0).0, [2.0; 24]);
    }
}
