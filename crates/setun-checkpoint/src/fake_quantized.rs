//! Matrices of floats whose values are ternary already.
//!
//! [`unpack`] reads −s, 0 and +s, where the scale s is that of the matrix, of a row, or of a group
//! of a row's columns: `TriLM` and Ternary Bonsai are published so, as products of codes and
//! scales, rounded to 16 bits. [`pack_codes`] reads −1, 0 and +1 beside a stored scale, which
//! transformers writes when it saves a model that it has unpacked.

use setun_ops::{
    aligned::Aligned,
    ternary::{PLANE_COLUMNS, Scales, pack_row, row_bytes},
};

use crate::{
    error::CheckpointError,
    tensor::{Tensor, check_finite},
};

/// Codes and scales of a matrix `[rows, columns]` of floats, with as few scales as it has: one,
/// one for each row, or one for the widest groups of columns that each have one magnitude. Groups
/// are of equal width, a multiple of 32. Where all is zero the scale is 1.
///
/// # Errors
///
/// If the tensor is no matrix of floats, an element is not finite, or a group of 32 columns has
/// two magnitudes: the error names the first place that the one before it does not explain.
pub fn unpack(tensor: &Tensor) -> Result<(Aligned<u8>, Scales), CheckpointError> {
    let (rows, columns) = tensor.info.expect_matrix()?;
    check_finite(tensor)?;
    let mut codes = tensor.info.zeroed(rows, row_bytes(columns))?;
    let mut magnitudes = Magnitudes::new(columns);
    let mut wide = vec![0.0; columns];
    let mut row_codes = vec![0; columns];
    for (row, packed) in codes.chunks_exact_mut(row_bytes(columns).max(1)).enumerate() {
        widen(tensor, row * columns, &mut wide)?;
        if let Some(column) = magnitudes.add_row(&wide) {
            return Err(tensor.info.not_ternary(row, column));
        }
        for (code, value) in row_codes.iter_mut().zip(&wide) {
            *code = 1 + u8::from(*value > 0.0) - u8::from(*value < 0.0);
        }
        pack_row(&row_codes, packed);
    }
    Ok((codes, magnitudes.scales()))
}

/// Packed rows `[rows, row_bytes(columns)]` in the layout of [`setun_ops::ternary`], padding
/// included, from a matrix `[rows, columns]` of floats.
///
/// # Errors
///
/// If the tensor is no matrix of floats, or an element is none of −1, 0 and +1.
pub fn pack_codes(tensor: &Tensor) -> Result<Aligned<u8>, CheckpointError> {
    let (rows, columns) = tensor.info.expect_matrix()?;
    let mut packed = tensor.info.zeroed(rows, row_bytes(columns))?;
    let mut wide = vec![0.0; columns];
    let mut codes = vec![0; columns];
    for (row, packed) in packed.chunks_exact_mut(row_bytes(columns).max(1)).enumerate() {
        widen(tensor, row * columns, &mut wide)?;
        for (column, (code, value)) in codes.iter_mut().zip(&wide).enumerate() {
            *code = match *value {
                -1.0 => 0,
                0.0 => 1,
                1.0 => 2,
                _ => return Err(tensor.info.not_ternary(row, column)),
            };
        }
        pack_row(&codes, packed);
    }
    Ok(packed)
}

fn widen(tensor: &Tensor, start: usize, wide: &mut [f32]) -> Result<(), CheckpointError> {
    if tensor.data.widen(start, wide) { Ok(()) } else { Err(tensor.info.not_float()) }
}

/// The magnitudes of a matrix in its narrowest groups, row by row; 0 where all is zero.
struct Magnitudes {
    columns: usize,
    groups: usize, // in a row
    values: Vec<f32>,
}

impl Magnitudes {
    fn new(columns: usize) -> Self {
        Self { columns, groups: columns.div_ceil(PLANE_COLUMNS), values: vec![] }
    }

    /// The first column of a second magnitude in its group, if there is one.
    fn add_row(&mut self, row: &[f32]) -> Option<usize> {
        for (group, values) in row.chunks(PLANE_COLUMNS).enumerate() {
            let magnitude = values.iter().fold(0.0_f32, |most, value| most.max(value.abs()));
            let differs = |value: &f32| *value != 0.0 && value.abs() != magnitude;
            if values.iter().any(differs) {
                let first = values.iter().find(|value| **value != 0.0).map_or(0.0, |x| x.abs());
                let second = |value: &f32| *value != 0.0 && value.abs() != first;
                let column = values.iter().position(second).unwrap_or(0);
                return Some(group * PLANE_COLUMNS + column);
            }
            self.values.push(magnitude);
        }
        None
    }

    /// As few scales as explain the matrix.
    fn scales(self) -> Scales {
        crate::scales::fewest(&self.values, self.groups, PLANE_COLUMNS, self.columns)
    }
}

#[cfg(test)]
mod tests {
    use setun_ops::ternary::code_at;

    use super::*;
    use crate::{dtype::Dtype, tensor::TensorData};

    fn matrix(values: &[f32]) -> Tensor {
        let shape = [2, values.len() / 2];
        Tensor::new("w", Dtype::F32, &shape, TensorData::F32(values.to_vec().into()))
    }

    #[test]
    fn codes_are_kept_and_all_else_is_named() {
        let packed = pack_codes(&matrix(&[-1.0, 0.0, 1.0, 1.0, -0.0, -1.0])).unwrap();
        let codes = |row: usize| [0, 1, 2].map(|column| code_at(&packed[row * 32..][..32], column));
        assert_eq!((codes(0), codes(1)), ([0, 1, 2], [2, 1, 0]));
        let error = pack_codes(&matrix(&[0.0, 0.0, 0.0, 0.0, 0.5, 0.0])).unwrap_err();
        assert!(matches!(error, CheckpointError::NotTernary { row: 1, column: 1, .. }), "{error}");
    }
}
