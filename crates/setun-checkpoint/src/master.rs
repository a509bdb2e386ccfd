//! Master weights, quantized at load.
//!
//! # Definition
//!
//! With `W` widened exactly to `f32`, in this order:
//!
//! ```text
//! mean  = (fold16_f64 over |W|, row-major, as f64) / (rows × columns)   in f64
//! g     = 1 / max(mean as f32, 1e-5)                                    in f32
//! code  = clamp(round_half_even(W × g), −1, 1) + 1                      in f32
//! scale = 1 / g                                                         in f32
//! ```
//!
//! The scale is the reciprocal of the rounded `g`, not `mean` itself: that is the magnitude
//! which transformers' online quantization gives every weight other than zero.

use setun_ops::{
    aligned::Aligned,
    fold::{LANES, fold16_f64},
    ternary::{BLOCK_BYTES, BLOCK_COLUMNS, PLANE_COLUMNS, row_bytes},
};

use crate::{
    error::CheckpointError,
    side_by_side::{RUN_ROWS, side_by_side},
    tensor::{Tensor, TensorData, check_finite},
};

/// Least mean magnitude that is divided by.
const MIN_MEAN: f32 = 1e-5;

/// Codes and scale of a matrix `[rows, columns]` of floats, as the [module](self) defines them.
///
/// The codes are packed rows in the layout of [`setun_ops::ternary`], padding included:
/// `[rows, row_bytes(columns)]`. The scale multiplies, whatever the linear class.
///
/// # Errors
///
/// If the tensor is no matrix of floats, or an element, or the scale, is not finite.
pub fn quantize(tensor: &Tensor) -> Result<(Aligned<u8>, f32), CheckpointError> {
    let (rows, columns) = tensor.info.expect_matrix()?;
    check_finite(tensor)?;
    let mut codes = tensor.info.zeroed(rows, row_bytes(columns))?;
    let inverse = 1.0 / mean_magnitude(&tensor.data, rows * columns).max(MIN_MEAN);
    let runs = codes.chunks_mut((RUN_ROWS * row_bytes(columns)).max(1)).enumerate().collect();
    side_by_side(runs, |(run, codes)| {
        quantize_run(&tensor.data, run * RUN_ROWS * columns, columns, inverse, codes);
    });
    let scale = 1.0 / inverse;
    if !scale.is_finite() {
        return Err(tensor.info.bad_scale(scale));
    }
    Ok((codes, scale))
}

/// Writes the codes of some rows over zeros; their floats begin at `start`.
fn quantize_run(values: &TensorData, start: usize, columns: usize, inverse: f32, codes: &mut [u8]) {
    let rows = codes.chunks_exact_mut(row_bytes(columns).max(1));
    for (row, codes) in rows.enumerate() {
        let blocks = (0..columns).step_by(BLOCK_COLUMNS).zip(codes.chunks_exact_mut(BLOCK_BYTES));
        for (first, codes) in blocks {
            let mut wide = [0.0; BLOCK_COLUMNS]; // padded with weight 0
            let width = BLOCK_COLUMNS.min(columns - first);
            let is_float = values.widen(start + row * columns + first, &mut wide[..width]);
            debug_assert!(is_float, "checked to be finite floats");
            for (plane, wide) in wide.chunks_exact(PLANE_COLUMNS).enumerate() {
                for (codes, &value) in codes.iter_mut().zip(wide) {
                    *codes |= code(value * inverse) << (2 * plane);
                }
            }
        }
    }
}

/// The mean of the definition. A lane is summed as the fold sums it, then the fold of the lanes
/// is that of the whole.
fn mean_magnitude(values: &TensorData, elements: usize) -> f32 {
    let mut lanes = [0.0; LANES];
    let mut wide = [0.0; BLOCK_COLUMNS];
    for start in (0..elements).step_by(BLOCK_COLUMNS) {
        let wide = &mut wide[..BLOCK_COLUMNS.min(elements - start)];
        let is_float = values.widen(start, wide);
        debug_assert!(is_float, "checked to be finite floats");
        for terms in wide.chunks(LANES) {
            for (lane, term) in lanes.iter_mut().zip(terms) {
                *lane += f64::from(term.abs());
            }
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "below 2^53 elements")]
    let count = elements.max(1) as f64;
    #[expect(clippy::cast_possible_truncation, reason = "the definition rounds the mean to f32")]
    let mean = (fold16_f64(lanes) / count) as f32;
    mean
}

/// `clamp(round_half_even(x), −1, 1) + 1`: a half rounds to the even 0, and all beyond is ±1.
fn code(x: f32) -> u8 {
    1 + u8::from(x > 0.5) - u8::from(x < -0.5)
}

#[cfg(test)]
mod tests {
    use crate::dtype::Dtype;
    use proptest::{collection::vec, prelude::*};
    use setun_ops::{
        TernaryMatrix,
        ternary::{Scales, ZERO_WEIGHTS},
    };

    use super::*;

    fn tensor(shape: &[usize], values: Vec<f32>) -> Tensor {
        Tensor::new("w", Dtype::F32, shape, TensorData::F32(values.into()))
    }

    /// The definition, word by word.
    fn defined(values: &[f32]) -> (Vec<i8>, f32) {
        let sum = fold16_f64(values.iter().map(|w| f64::from(w.abs())));
        #[expect(clippy::cast_possible_truncation, reason = "as defined")]
        let mean = (sum / f64::from(u32::try_from(values.len()).unwrap())) as f32;
        let g = 1.0 / mean.max(1e-5);
        #[expect(clippy::cast_possible_truncation, reason = "−1, 0 or 1")]
        let weight = |w: &f32| (w * g).round_ties_even().clamp(-1.0, 1.0) as i8;
        (values.iter().map(weight).collect(), 1.0 / g)
    }

    proptest! {
        #[test]
        fn codes_follow_the_definition(
            columns in 1..300_usize,
            seed in vec(-2.0..2.0_f32, 1..900),
            exponent in -40..40_i32,
        ) {
            let rows = seed.len().div_ceil(columns);
            let mut values: Vec<_> = seed.iter().map(|w| w * 2.0_f32.powi(exponent)).collect();
            values.resize(rows * columns, 0.0);
            let (weights, scale) = defined(&values);
            let (codes, found) = quantize(&tensor(&[rows, columns], values)).unwrap();
            prop_assert_eq!(found.to_bits(), scale.to_bits());
            let matrix = TernaryMatrix::new(rows, columns, codes, Scales::Tensor(found)).unwrap();
            for (place, weight) in weights.into_iter().enumerate() {
                prop_assert_eq!(matrix.weight(place / columns, place % columns), weight);
            }
        }
    }

    #[test]
    fn a_half_rounds_to_even() {
        // The mean is 1, so each value is compared as it stands.
        let above = 0.5 + f32::EPSILON / 2.0;
        let values = vec![0.5, -0.5, above, -above, 1.5, -1.5, 2.0, 1.0 - f32::EPSILON];
        let (weights, _) = defined(&values);
        let (codes, scale) = quantize(&tensor(&[1, 8], values)).unwrap();
        assert_eq!(scale, 1.0);
        assert_eq!(weights, [0, 0, 1, -1, 1, -1, 1, 1]);
        let matrix = TernaryMatrix::new(1, 8, codes, Scales::Tensor(scale)).unwrap();
        let found: Vec<_> = (0..8).map(|column| matrix.weight(0, column)).collect();
        assert_eq!(found, weights);
    }

    #[test]
    fn zeros_have_a_scale() {
        let (codes, scale) = quantize(&tensor(&[2, 3], vec![0.0; 6])).unwrap();
        assert_eq!(*codes, [ZERO_WEIGHTS; 2 * BLOCK_BYTES]);
        assert_eq!(scale, 1.0 / (1.0 / MIN_MEAN));
    }

    #[test]
    fn what_is_no_number_is_refused() {
        let error = quantize(&tensor(&[1, 3], vec![1.0, f32::NAN, 1.0])).unwrap_err();
        assert!(matches!(error, CheckpointError::NotFinite { index: 1, .. }), "{error}");
        let error = quantize(&tensor(&[1, 2], vec![f32::MAX; 2])).map(|(_, scale)| scale);
        assert!(error.is_err_and(|error| matches!(error, CheckpointError::Scale { .. })));
        let error = quantize(&tensor(&[3], vec![1.0; 3])).unwrap_err();
        assert!(matches!(error, CheckpointError::Rank { .. }), "{error}");
    }
}
