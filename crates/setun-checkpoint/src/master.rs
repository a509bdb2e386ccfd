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
