//! `quantize`: int8 codes and one scale for each row of activations.
//!
//! ```text
//! a = max(absmax(x), 1e-5);  s = 127 / a
//! q[i] = clamp(round_half_even(x[i] · s), −127, 127);  t = a / 127
//! ```
//!
//! The scale is applied as `x · (127 / a)`, in this order, which decides ties (transformers'
//! `ActQuant`). A row with a NaN or an infinity has codes 0 and scale NaN, so that the logits
//! show it. Where a gain is given, `x` is first normed as [`rms_norm`](crate::rms_norm) says.
//!
//! A row may have a scale for each group of columns instead: each group is then quantized as a row.

use crate::{op::Agreement, ternary::PLANE_COLUMNS};

/// A GPU may differ by one code where `x · s` lies within 1e-3 of a tie.
pub const AGREEMENT: Agreement = Agreement::ExactOnCpu { gpu_ulp: 4 };

/// Smallest magnitude that a row is scaled by.
pub const MIN_ABSMAX: f32 = 1e-5;

/// Largest code.
pub const MAX_CODE: f32 = 127.0;

/// What [`quantize_row`] returns beside the codes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RowScale {
    /// `t`, which turns codes back into activations.
    pub scale: f32,
    /// Sum of the codes: turns sums over codes 0..=2 into sums over weights −1..=1.
    pub sum: i32,
}

/// Quantizes one row. Codes beyond `x` are padding and become 0.
///
/// # Panics
///
/// If `codes` is shorter than `x`.
pub fn quantize_row(x: &[f32], codes: &mut [i8]) -> RowScale {
    let (codes, padding) = codes.split_at_mut(x.len());
    padding.fill(0);
    let absmax = absmax(x);
    if !absmax.is_finite() {
        codes.fill(0);
        return RowScale { scale: f32::NAN, sum: 0 };
    }
    let a = if absmax < MIN_ABSMAX { MIN_ABSMAX } else { absmax };
    let s = MAX_CODE / a;
    let mut sum = 0;
    for (code, x) in codes.iter_mut().zip(x) {
        let rounded = (x * s).round_ties_even().clamp(-MAX_CODE, MAX_CODE);
        *code = to_code(rounded);
        sum += i32::from(*code);
    }
    RowScale { scale: a / MAX_CODE, sum }
}

/// Quantizes each group of a row: [`quantize_row`] of every `group` columns. `scales` are those of the
/// groups. Codes beyond `x` are padding and become 0.
///
/// # Panics
///
/// If `group` is zero, or `codes` or `scales` are shorter than needed.
pub fn quantize_groups(x: &[f32], group: usize, codes: &mut [i8], scales: &mut [f32]) {
    let (codes, padding) = codes.split_at_mut(x.len());
    padding.fill(0);
    for ((x, codes), scale) in x.chunks(group).zip(codes.chunks_mut(group)).zip(scales) {
        *scale = quantize_row(x, codes).scale;
    }
}

/// Whether this number of columns of activations can share a scale: whole planes.
#[must_use]
pub fn is_group(columns: usize) -> bool {
    columns > 0 && columns.is_multiple_of(PLANE_COLUMNS)
}

/// Scales of a row of this width.
#[must_use]
pub fn scales_of_row(width: usize, group: Option<usize>) -> usize {
    group.map_or(1, |group| width.div_ceil(group.max(1)))
}

/// The largest magnitude, by bits, so that a NaN counts as larger than everything. +0 if empty.
#[must_use]
pub fn absmax(x: &[f32]) -> f32 {
    f32::from_bits(x.iter().map(|x| x.abs().to_bits()).max().unwrap_or(0))
}

#[expect(clippy::cast_possible_truncation, reason = "an integer in −127..=127")]
fn to_code(rounded: f32) -> i8 {
    rounded as i8
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quantized(x: &[f32]) -> (Vec<i8>, RowScale) {
        let mut codes = vec![99; x.len() + 3];
        let scale = quantize_row(x, &mut codes);
        assert_eq!(codes.split_off(x.len()), [0; 3], "padding");
        (codes, scale)
    }

    #[test]
    fn ties_go_to_even() {
        let (codes, scale) = quantized(&[127.0, 0.5, 1.5, 2.5, -0.5, -1.5]);
        assert_eq!(codes, [127, 0, 2, 2, 0, -2]);
        assert_eq!(scale, RowScale { scale: 1.0, sum: 129 });
    }

    #[test]
    fn small_and_zero_rows_use_the_least_absmax() {
        assert_eq!(quantized(&[1e-7, -1e-7]).0, [1, -1]);
        let (codes, scale) = quantized(&[0.0, -0.0]);
        assert_eq!((codes, scale.scale.to_bits()), (vec![0, 0], (1e-5f32 / 127.0).to_bits()));
    }

    #[test]
    fn groups_are_rows_of_their_own() {
        let x: Vec<f32> = (0..70u8).map(|i| if i < 32 { f32::from(i) } else { 0.25 }).collect();
        let (mut codes, mut scales) = (vec![99; 128], vec![0.0; 3]);
        quantize_groups(&x, 32, &mut codes, &mut scales);
        assert_eq!(scales, [31.0 / 127.0, 0.25 / 127.0, 0.25 / 127.0]);
        assert_eq!((codes[31], codes[32], codes[69], codes[70]), (127, 127, 127, 0));
    }

    #[test]
    fn what_is_not_finite_shows() {
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let (codes, scale) = quantized(&[1.0, bad, 2.0]);
            assert_eq!(codes, [0; 3]);
            assert!(scale.scale.is_nan());
        }
    }
}
