//! Matrices of floats that are codes already: −1, 0 and +1 beside a stored scale.
//!
//! This is what transformers writes when it saves a model that it has unpacked.

use half::slice::HalfFloatSliceExt;
use setun_ops::{
    aligned::Aligned,
    ternary::{pack_row, row_bytes},
};

use crate::{
    error::CheckpointError,
    tensor::{Tensor, TensorData, not_float},
};

/// Packed rows `[rows, row_bytes(columns)]` in the layout of [`setun_ops::ternary`], padding
/// included, from a matrix `[rows, columns]` of floats.
///
/// # Errors
///
/// If the tensor is no matrix of floats, or an element is none of −1, 0 and +1.
pub fn pack(tensor: &Tensor) -> Result<Aligned<u8>, CheckpointError> {
    let (rows, columns) = tensor.info.expect_matrix()?;
    let mut packed = tensor.info.zeroed(rows, row_bytes(columns))?;
    let mut wide = vec![0.0; columns];
    let mut codes = vec![0; columns];
    for (row, packed) in packed.chunks_exact_mut(row_bytes(columns).max(1)).enumerate() {
        let range = row * columns..(row + 1) * columns;
        match &tensor.data {
            TensorData::F32(values) => wide.copy_from_slice(&values[range]),
            TensorData::F16(values) => values[range].convert_to_f32_slice(&mut wide),
            TensorData::Bf16(values) => values[range].convert_to_f32_slice(&mut wide),
            TensorData::Bytes(_) => return Err(not_float(&tensor.info)),
        }
        for (column, (code, value)) in codes.iter_mut().zip(&wide).enumerate() {
            *code = match *value {
                -1.0 => 0,
                0.0 => 1,
                1.0 => 2,
                _ => {
                    let tensor = tensor.info.name.clone();
                    return Err(CheckpointError::NotTernary { tensor, row, column });
                }
            };
        }
        pack_row(&codes, packed);
    }
    Ok(packed)
}

#[cfg(test)]
mod tests {
    use crate::dtype::Dtype;
    use setun_ops::ternary::code_at;

    use super::*;
    use crate::tensor::TensorInfo;

    fn matrix(values: &[f32]) -> Tensor {
        let (name, file) = ("w".to_owned(), "f".into());
        let shape = vec![2, values.len() / 2];
        let info =
            TensorInfo { name, dtype: Dtype::F32, shape, file, range: 0..0, paired_heads: None };
        Tensor { info, data: TensorData::F32(values.to_vec().into()) }
    }

    #[test]
    fn codes_are_kept_and_all_else_is_named() {
        let packed = pack(&matrix(&[-1.0, 0.0, 1.0, 1.0, -0.0, -1.0])).unwrap();
        let codes = |row: usize| [0, 1, 2].map(|column| code_at(&packed[row * 32..][..32], column));
        assert_eq!((codes(0), codes(1)), ([0, 1, 2], [2, 1, 0]));
        let error = pack(&matrix(&[0.0, 0.0, 0.0, 0.0, 0.5, 0.0])).unwrap_err();
        assert!(matches!(error, CheckpointError::NotTernary { row: 1, column: 1, .. }), "{error}");
    }
}
