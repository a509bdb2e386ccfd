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

use half::{bf16, f16};
use setun_ops::{
    fold::fold16_f64,
    ternary::{BLOCK_BYTES, BLOCK_COLUMNS, PLANE_COLUMNS, ZERO_WEIGHTS, row_bytes},
};

use crate::{
    dense,
    error::CheckpointError,
    tensor::{Tensor, TensorData},
};

/// Least mean magnitude that is divided by.
const LEAST_MEAN: f32 = 1e-5;

/// Codes and scale of a matrix `[rows, columns]` of floats, as the [module](self) defines them.
///
/// The codes are packed rows in the layout of [`setun_ops::ternary`], padding included:
/// `[rows, row_bytes(columns)]`. The scale multiplies, whatever the linear class.
///
/// # Errors
///
/// If the tensor is no matrix of floats, or an element is not finite.
pub fn quantize(tensor: &Tensor) -> Result<(Vec<u8>, f32), CheckpointError> {
    let (_, columns) = tensor.info.expect_matrix()?;
    dense::check_finite(tensor)?;
    match &tensor.data {
        TensorData::F32(values) => Ok(quantize_values(values, columns, |value| value)),
        TensorData::F16(values) => Ok(quantize_values(values, columns, f16::to_f32)),
        TensorData::Bf16(values) => Ok(quantize_values(values, columns, bf16::to_f32)),
        TensorData::Bytes(_) => Err(dense::not_float(&tensor.info)),
    }
}

fn quantize_values<T: Copy>(
    values: &[T],
    columns: usize,
    widen: impl Fn(T) -> f32,
) -> (Vec<u8>, f32) {
    let inverse = 1.0 / mean_magnitude(values, &widen).max(LEAST_MEAN);
    let row_bytes = row_bytes(columns);
    let rows = values.len() / columns.max(1);
    let mut packed = vec![ZERO_WEIGHTS; rows * row_bytes];
    for (row, packed) in
        values.chunks_exact(columns.max(1)).zip(packed.chunks_exact_mut(row_bytes.max(1)))
    {
        for (block, packed) in row.chunks(BLOCK_COLUMNS).zip(packed.chunks_exact_mut(BLOCK_BYTES)) {
            for (plane, values) in block.chunks(PLANE_COLUMNS).enumerate() {
                for (packed, &value) in packed.iter_mut().zip(values) {
                    let shift = 2 * plane;
                    let code = code(widen(value) * inverse);
                    *packed = *packed & !(0b11 << shift) | code << shift;
                }
            }
        }
    }
    (packed, 1.0 / inverse)
}

fn mean_magnitude<T: Copy>(values: &[T], widen: impl Fn(T) -> f32) -> f32 {
    let sum = fold16_f64(values.iter().map(|&value| f64::from(widen(value).abs())));
    #[expect(clippy::cast_precision_loss, reason = "below 2^53 elements")]
    let count = values.len().max(1) as f64;
    #[expect(clippy::cast_possible_truncation, reason = "the definition rounds the mean to f32")]
    let mean = (sum / count) as f32;
    mean
}

/// `clamp(round_half_even(x), −1, 1) + 1`: a half rounds to the even 0, and all beyond is ±1.
fn code(x: f32) -> u8 {
    1 + u8::from(x > 0.5) - u8::from(x < -0.5)
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};
    use safetensors::Dtype;
    use setun_ops::{TernaryMatrix, ternary::Scales};

    use super::*;
    use crate::tensor::TensorInfo;

    fn tensor(shape: &[usize], values: Vec<f32>) -> Tensor {
        let (name, file) = ("w".to_owned(), "f".into());
        let dtype = Dtype::F32;
        let info = TensorInfo { name, dtype, shape: shape.to_vec(), file, range: 0..0 };
        Tensor { info, data: TensorData::F32(values) }
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
        assert_eq!(codes, [ZERO_WEIGHTS; 2 * BLOCK_BYTES]);
        assert_eq!(scale, 1.0 / (1.0 / LEAST_MEAN));
    }

    #[test]
    fn what_is_no_number_is_refused() {
        let error = quantize(&tensor(&[1, 3], vec![1.0, f32::NAN, 1.0])).unwrap_err();
        assert!(matches!(error, CheckpointError::NotFinite { index: 1, .. }), "{error}");
        let error = quantize(&tensor(&[3], vec![1.0; 3])).unwrap_err();
        assert!(matches!(error, CheckpointError::Rank { .. }), "{error}");
    }
}
