//! Frequencies of the rotary position embedding, as transformers computes them.

use std::f32::consts::PI;

use setun_checkpoint::config::{RopeConfig, RopeScaling};
use setun_ops::{OpsError, rope_append::RopeTable};

/// Cosines and sines of the positions `0..positions`.
///
/// # Errors
///
/// If an angle is not finite, or there is no memory for the table.
pub fn table(rope: &RopeConfig, head_dim: usize, positions: usize) -> Result<RopeTable, OpsError> {
    let factor = match rope.scaling {
        RopeScaling::Default | RopeScaling::Llama3 { .. } => 1.0,
        RopeScaling::Yarn { attention_factor: Some(factor), .. } => factor,
        RopeScaling::Yarn { factor, .. } if factor <= 1.0 => 1.0,
        RopeScaling::Yarn { factor, .. } => round(0.1 * libm::log(f64::from(factor)) + 1.0),
    };
    RopeTable::scaled(positions, &inverse_frequencies(rope, head_dim), factor)
}

/// Inverse frequencies `[head_dim / 2]`: `1 / theta^(2i / head_dim)`, rescaled where the
/// configuration says so.
///
/// Base and exponent are rounded to `f32`; the power is taken in `f64` and rounded.
#[must_use]
pub fn inverse_frequencies(rope: &RopeConfig, head_dim: usize) -> Vec<f32> {
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
