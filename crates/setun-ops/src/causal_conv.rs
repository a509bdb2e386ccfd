//! `causal_conv`: a convolution over the last rows of a channel, then `SiLU`.
//!
//! ```text
//! y = Σ x[row − kernel + 1 + j] × taps[j]      j ascending, from +0
//! c = y / (1 + exp(−y))
//! ```

use crate::exp::exp;

/// One channel of one row: `x` are the channel's last values, oldest first.
#[must_use]
pub fn causal_conv(x: impl Iterator<Item = f32>, taps: impl Iterator<Item = f32>) -> f32 {
    let y = x.zip(taps).fold(0.0, |sum, (x, tap)| sum + x * tap);
    y / (1.0 + exp(-y))
}
