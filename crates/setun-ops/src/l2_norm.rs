//! `l2_norm`: a vector divided by its length.
//!
//! ```text
//! y[i] = (x[i] × (1 / sqrt(fold16(x²) + 1e-6))) × scale
//! ```

use crate::fold::fold16;

/// Added to the sum of squares.
pub const EPSILON: f32 = 1e-6;

/// Norms `x` in place.
pub fn l2_norm(x: &mut [f32], scale: f32) {
    let inverse = inverse_length(fold16(x.iter().map(|x| x * x)));
    for x in x {
        *x = *x * inverse * scale;
    }
}

/// `1 / sqrt(sum_of_squares + 1e-6)`
#[must_use]
pub fn inverse_length(sum_of_squares: f32) -> f32 {
    1.0 / (sum_of_squares + EPSILON).sqrt()
}
