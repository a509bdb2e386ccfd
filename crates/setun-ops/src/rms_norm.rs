//! `rms_norm`: root-mean-square norm of each row.
//!
//! ```text
//! y[i] = (x[i] × (1 / sqrt(fold16(x²) / n + eps))) × gain[i]
//! ```

use crate::{fold::fold16, op::Agreement};

/// See [`Agreement`].
pub const AGREEMENT: Agreement = Agreement::ExactOnCpu { gpu_ulp: 4 };

/// Norms one row `[n]` with a gain `[n]`.
///
/// # Panics
///
/// If the lengths differ.
pub fn rms_norm_row(x: &[f32], gain: &[f32], eps: f32, y: &mut [f32]) {
    assert!(x.len() == gain.len() && x.len() == y.len(), "row, gain and result");
    let inverse = inverse_rms(fold16(x.iter().map(|x| x * x)), x.len(), eps);
    for ((y, x), gain) in y.iter_mut().zip(x).zip(gain) {
        *y = x * inverse * gain;
    }
}

/// `1 / sqrt(sum_of_squares / n + eps)`
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "rows are shorter than 2^24")]
pub fn inverse_rms(sum_of_squares: f32, n: usize, eps: f32) -> f32 {
    1.0 / (sum_of_squares / n as f32 + eps).sqrt()
}
