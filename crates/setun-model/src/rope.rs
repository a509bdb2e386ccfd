//! Frequencies of the rotary position embedding, as transformers computes them.

use std::f32::consts::PI;

use setun_checkpoint::config::{RopeConfig, RopeScaling};

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
            let inverse = 1.0 / round(libm::pow(theta, f64::from(exponent)));
            rescale(inverse, &rope.scaling)
        })
        .collect()
}

/// Llama 3.1's rule: short wavelengths stay, long ones are divided by `factor`, and those in
/// between pass smoothly from one to the other.
///
/// A number divided by a tensor is, in torch, the number times the reciprocal.
fn rescale(inverse: f32, scaling: &RopeScaling) -> f32 {
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
