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

use half::slice::HalfFloatSliceExt;
use setun_ops::{
    aligned::Aligned,
    fold::{LANES, fold16_f64},
    ternary::{BLOCK_BYTES, BLOCK_COLUMNS, PLANE_COLUMNS, row_bytes},
};

use crate::{
    error::CheckpointError,
    side_by_side::{RUN_ROWS, side_by_side},
    tensor::{Tensor, TensorData, check_finite, not_float},
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
    let scale = match &tensor.data {
        TensorData::F32(values) => {
            quantize_values(values, columns, &mut codes, |block, wide| wide.copy_from_slice(block))
        }
        TensorData::F16(values) => quantize_values(values, columns, &mut codes, |block, wide| {
            block.convert_to_f32_slice(wide);
        }),
        TensorData::Bf16(values) => quantize_values(values, columns, &mut codes, |block, wide| {
            block.convert_to_f32_slice(wide);
        }),
        TensorData::Bytes(_) => return Err(not_float(&tensor.info)),
    };
    if !scale.is_finite() {
        return Err(CheckpointError::Scale { tensor: tensor.info.name.clone(), found: scale });
    }
    Ok((codes, scale))
}

/// Writes the codes over zeros; returns the scale. `widen` widens a block or less of one.
fn quantize_values<T: Sync>(
    values: &[T],
    columns: usize,
    codes: &mut [u8],
    widen: impl Fn(&[T], &mut [f32]) + Send + Sync,
) -> f32 {
    let inverse = 1.0 / mean_magnitude(values, &widen).max(MIN_MEAN);
    let runs = values.chunks((RUN_ROWS * columns).max(1));
    let runs = runs.zip(codes.chunks_mut((RUN_ROWS * row_bytes(columns)).max(1))).collect();
    side_by_side(runs, |(values, codes)| quantize_run(values, columns, inverse, codes, &widen));
    1.0 / inverse
}

/// Writes the codes of some rows over zeros.
fn quantize_run<T>(
    values: &[T],
    columns: usize,
    inverse: f32,
    codes: &mut [u8],
    widen: impl Fn(&[T], &mut [f32]),
) {
    let rows = values.chunks_exact(columns.max(1));
    for (row, codes) in rows.zip(codes.chunks_exact_mut(row_bytes(columns).max(1))) {
        for (block, codes) in row.chunks(BLOCK_COLUMNS).zip(codes.chunks_exact_mut(BLOCK_BYTES)) {
            let mut wide = [0.0; BLOCK_COLUMNS]; // padded with weight 0
            widen(block, &mut wide[..block.len()]);
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
fn mean_magnitude<T>(values: &[T], widen: impl Fn(&[T], &mut [f32])) -> f32 {
    let mut lanes = [0.0; LANES];
    let mut wide = [0.0; BLOCK_COLUMNS];
    for block in values.chunks(BLOCK_COLUMNS) {
        let wide = &mut wide[..block.len()];
        widen(block, wide);
        for terms in wide.chunks(LANES) {
            for (lane, term) in lanes.iter_mut().zip(terms) {
                *lane += f64::from(term.abs());
            }
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "below 2^53 elements")]
    let count = values.len().max(1) as f64;
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
    use crate::tensor::TensorInfo;

    fn tensor(shape: &[usize], values: Vec<f32>) -> Tensor {
        let (name, file) = ("w".to_owned(), "f".into());
        let dtype = Dtype::F32;
        let info = TensorInfo {
            name,
            dtype,
            shape: shape.to_vec(),
            file,
            range: 0..0,
            paired_heads: None,
        };
        Tensor { info, data: TensorData::F32(values.into()) }
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
