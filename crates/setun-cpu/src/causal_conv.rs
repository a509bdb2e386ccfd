//! `causal_conv`, `l2_norm` and the gates of `delta_net` over lanes.

use fearless_simd::{f32x16, prelude::*};
use setun_ops::{causal_conv, l2_norm::inverse_length};

use crate::lanes::{LANES, exp, sum_squares};

/// Channels of a row: `rows` begin with the oldest that it sees, each this wide, and `taps` are `[kernel, channels]`.
#[inline(always)]
pub(crate) fn causal_conv<S: Simd>(
    simd: S,
    (rows, width): (&[f32], usize),
    taps: &[f32],
    out: &mut [f32],
) {
    let channels = out.len();
    let seen = || rows.chunks(width).zip(taps.chunks_exact(channels));
    let (chunks, rest) = out.as_chunks_mut::<LANES>();
    let whole = chunks.len() * LANES;
    for (index, out) in chunks.iter_mut().enumerate() {
        let columns = index * LANES..(index + 1) * LANES;
        let mut sum = f32x16::splat(simd, 0.0);
        for (row, taps) in seen() {
            let x = f32x16::from_slice(simd, &row[columns.clone()]);
            sum += x * f32x16::from_slice(simd, &taps[columns.clone()]);
        }
        silu(simd, sum).store_slice(out);
    }
    for (column, out) in (whole..).zip(rest) {
        let (x, taps) = (seen().map(|(row, _)| row[column]), seen().map(|(_, taps)| taps[column]));
        *out = causal_conv::causal_conv(x, taps);
    }
}

/// `x / (1 + exp(−x))`
#[inline(always)]
pub(crate) fn silu<S: Simd>(simd: S, x: f32x16<S>) -> f32x16<S> {
    x / (exp(simd, -x) + 1.0)
}

/// Lane version of [`setun_ops::l2_norm::l2_norm`].
#[inline(always)]
pub(crate) fn l2_norm<S: Simd>(simd: S, x: &mut [f32], scale: f32) {
    let inverse = inverse_length(sum_squares(simd, x));
    let (chunks, rest) = x.as_chunks_mut::<LANES>();
    for x in chunks {
        (f32x16::from_slice(simd, x) * inverse * scale).store_slice(x);
    }
    for x in rest {
        *x = *x * inverse * scale;
    }
}
