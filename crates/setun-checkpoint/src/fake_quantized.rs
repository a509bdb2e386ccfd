//! Matrices of floats that are −s, 0 and +s, where the scale s is that of the matrix, of a row,
//! or of a group of a row's columns.
//!
//! This is how `TriLM` and Ternary Bonsai are published for programs that know no ternary
//! weights: the products of codes and scales, rounded to 16 bits.

use half::slice::HalfFloatSliceExt;
use setun_ops::{
    aligned::Aligned,
    ternary::{PLANE_COLUMNS, Scales, pack_row, row_bytes},
};

use crate::{
    error::CheckpointError,
    tensor::{Tensor, TensorData, check_finite, not_float},
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
            let tensor = tensor.info.name.clone();
            return Err(CheckpointError::NotTernary { tensor, row, column });
        }
        for (code, value) in row_codes.iter_mut().zip(&wide) {
            *code = 1 + u8::from(*value > 0.0) - u8::from(*value < 0.0);
        }
        pack_row(&row_codes, packed);
    }
    Ok((codes, magnitudes.scales()))
}

fn widen(tensor: &Tensor, start: usize, wide: &mut [f32]) -> Result<(), CheckpointError> {
    let range = start..start + wide.len();
    match &tensor.data {
        TensorData::F32(values) => wide.copy_from_slice(&values[range]),
        TensorData::F16(values) => values[range].convert_to_f32_slice(wide),
        TensorData::Bf16(values) => values[range].convert_to_f32_slice(wide),
        TensorData::Bytes(_) => return Err(not_float(&tensor.info)),
    }
    Ok(())
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
