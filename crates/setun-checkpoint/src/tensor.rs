//! Tensors as a checkpoint holds them.

mod data;

use std::{ops::Range, sync::Arc};

use half::{bf16, f16};
use setun_ops::{
    OpsError,
    aligned::{Aligned, NoMemory},
    numeric::not_all_finite,
};

use crate::{
    dtype::{Dtype, FLOATS},
    error::CheckpointError,
};
pub use data::TensorData;

/// Name, type, shape and place of a tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorInfo {
    /// Name, for example `model.norm.weight`.
    pub name: String,
    /// Type of the elements.
    pub dtype: Dtype,
    /// Shape; the last dimension is contiguous.
    pub shape: Vec<usize>,
    /// Name of the file that holds it.
    pub file: Arc<str>,
    /// Its bytes in that file.
    pub range: Range<u64>,
    /// Where the rows of this many heads are paired for the other `RoPE` (rows 2i and 2i + 1 turn
    /// together): a reader puts them in order, i and i + d/2, before it hands the tensor out.
    pub paired_heads: Option<usize>,
}

impl TensorInfo {
    /// Number of elements.
    #[must_use]
    pub fn elements(&self) -> usize {
        self.shape.iter().product()
    }

    /// Number of bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.range.end - self.range.start
    }

    /// # Errors
    ///
    /// [`CheckpointError::Shape`] if the shape is not `expected`.
    pub fn expect_shape(&self, expected: &[usize]) -> Result<(), CheckpointError> {
        if self.shape == expected {
            return Ok(());
        }
        Err(CheckpointError::Shape {
            tensor: self.name.clone(),
            expected: expected.to_vec(),
            found: self.shape.clone(),
        })
    }

    /// # Errors
    ///
    /// [`CheckpointError::Dtype`] if the type is none of `expected`.
    pub fn expect_dtype(&self, expected: &[Dtype]) -> Result<(), CheckpointError> {
        if expected.contains(&self.dtype) {
            return Ok(());
        }
        Err(CheckpointError::Dtype {
            tensor: self.name.clone(),
            expected: expected.to_vec(),
            found: self.dtype,
        })
    }

    /// Rows and columns of a matrix.
    ///
    /// # Errors
    ///
    /// [`CheckpointError::Rank`] if there are not two dimensions.
    pub fn expect_matrix(&self) -> Result<(usize, usize), CheckpointError> {
        match self.shape[..] {
            [rows, columns] => Ok((rows, columns)),
            _ => Err(self.rank("a matrix [rows, columns]")),
        }
    }

    /// Zeroed bytes `[rows, row_bytes]` for what this tensor is turned into.
    pub(crate) fn zeroed(
        &self,
        rows: usize,
        row_bytes: usize,
    ) -> Result<Aligned<u8>, CheckpointError> {
        let bytes = rows.saturating_mul(row_bytes);
        Aligned::zeroed(bytes).map_err(|error| self.no_memory(error))
    }

    pub(crate) fn no_memory(&self, NoMemory { bytes }: NoMemory) -> CheckpointError {
        CheckpointError::OutOfMemory { tensor: self.name.clone(), bytes: bytes as u64 }
    }

    pub(crate) fn not_ternary(&self, row: usize, column: usize) -> CheckpointError {
        CheckpointError::NotTernary { tensor: self.name.clone(), row, column }
    }

    pub(crate) fn not_float(&self) -> CheckpointError {
        let (tensor, expected) = (self.name.clone(), FLOATS.to_vec());
        CheckpointError::Dtype { tensor, expected, found: self.dtype }
    }

    pub(crate) fn bad_scale(&self, found: f32) -> CheckpointError {
        CheckpointError::Scale { tensor: self.name.clone(), found }
    }

    pub(crate) fn no_weight(&self, source: OpsError) -> CheckpointError {
        CheckpointError::Weight { tensor: self.name.clone(), source }
    }

    pub(crate) fn rank(&self, expected: &'static str) -> CheckpointError {
        let (tensor, found) = (self.name.clone(), self.shape.clone());
        CheckpointError::Rank { tensor, expected, found }
    }
}

/// The tensor of a name.
///
/// # Errors
///
/// [`CheckpointError::MissingTensor`], with up to three similar names.
pub fn find<'a>(tensors: &'a [TensorInfo], name: &str) -> Result<&'a TensorInfo, CheckpointError> {
    tensors.iter().find(|tensor| tensor.name == name).ok_or_else(|| missing(tensors, name))
}

/// The error for a tensor that is not there, with up to three similar names.
#[must_use]
pub fn missing(tensors: &[TensorInfo], name: &str) -> CheckpointError {
    const MOST: usize = 3;
    let mut similar: Vec<_> = tensors
        .iter()
        .map(|tensor| (shared_ends(&tensor.name, name), tensor.name.as_str()))
        .filter(|(shared, _)| shared * 4 >= name.len() * 3)
        .collect();
    similar.sort_by_key(|&(shared, name)| (std::cmp::Reverse(shared), name));
    CheckpointError::MissingTensor {
        name: name.to_owned(),
        similar: similar.into_iter().take(MOST).map(|(_, name)| name.to_owned()).collect(),
    }
}

/// Bytes that two names share at their starts and ends, counted once.
fn shared_ends(a: &str, b: &str) -> usize {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let start = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let end = a[start..].iter().rev().zip(b[start..].iter().rev()).take_while(|(a, b)| a == b);
    start + end.count()
}

/// A tensor with its elements.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// Name, type and shape.
    pub info: TensorInfo,
    /// Elements, in row-major order.
    pub data: TensorData,
}

impl Tensor {
    /// A tensor that was made in memory and lies in no file.
    #[must_use]
    pub fn new(name: &str, dtype: Dtype, shape: &[usize], data: TensorData) -> Self {
        let (name, shape, file) = (name.to_owned(), shape.to_vec(), "".into());
        let range = 0..data.byte_len() as u64;
        Self { info: TensorInfo { name, dtype, shape, file, range, paired_heads: None }, data }
    }
}

/// # Errors
///
/// If the tensor has no floats, or one is not a finite number.
pub fn check_finite(tensor: &Tensor) -> Result<(), CheckpointError> {
    let bad = match &tensor.data {
        TensorData::F32(values) if not_all_finite(values, 0x7f80_0000_7f80_0000) => {
            first_bad(values, f32::is_finite, |x| x)
        }
        TensorData::F16(values) if not_all_finite(values, 0x7c00_7c00_7c00_7c00) => {
            first_bad(values, f16::is_finite, f16::to_f32)
        }
        TensorData::Bf16(values) if not_all_finite(values, 0x7f80_7f80_7f80_7f80) => {
            first_bad(values, bf16::is_finite, bf16::to_f32)
        }
        TensorData::Bytes(_) => return Err(tensor.info.not_float()),
        _ => None,
    };
    match bad {
        None => Ok(()),
        Some((index, found)) => {
            Err(CheckpointError::NotFinite { tensor: tensor.info.name.clone(), index, found })
        }
    }
}

fn first_bad<T: Copy>(
    values: &[T],
    is_finite: impl Fn(T) -> bool,
    widen: impl Fn(T) -> f32,
) -> Option<(usize, f32)> {
    let index = values.iter().position(|&value| !is_finite(value))?;
    Some((index, widen(values[index])))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(name: &str, shape: &[usize]) -> TensorInfo {
        Tensor::new(name, Dtype::Bf16, shape, TensorData::empty(Dtype::Bf16)).info
    }

    #[test]
    fn wrong_shapes_and_types_are_named() {
        let info = info("model.norm.weight", &[64]);
        assert_eq!(info.expect_shape(&[64]), Ok(()));
        assert_eq!(info.expect_dtype(&[Dtype::F32, Dtype::Bf16]), Ok(()));
        assert_eq!(
            info.expect_shape(&[64, 1]).unwrap_err().to_string(),
            "tensor `model.norm.weight` has shape [64], expected [64, 1]"
        );
        assert_eq!(
            info.expect_dtype(&[Dtype::F32, Dtype::F16]).unwrap_err().to_string(),
            "tensor `model.norm.weight` has element type BF16, expected F32 or F16"
        );
        assert_eq!(
            info.expect_matrix().unwrap_err().to_string(),
            "tensor `model.norm.weight` has shape [64], expected a matrix [rows, columns]"
        );
    }

    #[test]
    fn a_missing_tensor_names_similar_ones() {
        let tensors = [
            info("model.layers.0.mlp.ffn_layernorm.weight", &[1]),
            info("model.layers.0.self_attn.q_proj.weight", &[1]),
            info("lm_head.weight", &[1]),
        ];
        assert!(find(&tensors, "lm_head.weight").is_ok());
        let error = find(&tensors, "model.layers.0.mlp.ffn_sub_norm.weight").unwrap_err();
        assert_eq!(
            error.to_string(),
            "tensor `model.layers.0.mlp.ffn_sub_norm.weight` is missing; \
             there is `model.layers.0.mlp.ffn_layernorm.weight`"
        );
        let error = find(&tensors, "x").unwrap_err();
        assert_eq!(error.to_string(), "tensor `x` is missing");
    }
}
