//! Helpers of the block encoders: the scale of each block, where the type can hold it.

use crate::{error::CheckpointError, scales::by_group};
use half::f16;
use setun_ops::TernaryMatrix;

/// The scale of each block of `width` columns, row by row.
pub(super) fn block_scales(
    name: &str,
    format: &'static str,
    matrix: &TernaryMatrix,
    width: usize,
) -> Result<Vec<f16>, CheckpointError> {
    let (rows, columns) = (matrix.rows(), matrix.columns());
    if !columns.is_multiple_of(width) {
        return Err(rows_of_blocks(name, format, columns, width));
    }
    let scales = by_group(matrix.scales(), rows, columns, width);
    let scales = scales.ok_or_else(|| CheckpointError::Unwritable {
        format,
        what: format!("the scales of `{name}`, by groups that are no multiple of {width} columns"),
        way_out: "write .setun",
    })?;
    if scales.contains(&0.0) {
        return Err(zero_scale(name));
    }
    let exact = |scale: f32| exact_f16(scale).ok_or_else(|| inexact(name, format, scale));
    scales.into_iter().map(exact).collect()
}

/// The `f16` that is a number, if there is one.
pub(crate) fn exact_f16(number: f32) -> Option<f16> {
    let narrow = f16::from_f32(number);
    (narrow.to_f32() == number).then_some(narrow)
}

/// Whether a matrix has one scale that `f16` cannot hold.
pub(crate) fn needs_scale_beside(scale: f32) -> bool {
    exact_f16(scale).is_none()
}

fn inexact(name: &str, format: &'static str, scale: f32) -> CheckpointError {
    let what = format!("the scale {scale:e} of `{name}` without rounding it");
    CheckpointError::Unwritable { format, what, way_out: "write .setun, or I2_S where it is one" }
}

pub(super) fn rows_of_blocks(
    name: &str,
    format: &'static str,
    columns: usize,
    width: usize,
) -> CheckpointError {
    let what = format!("`{name}`, whose {columns} columns are no multiple of {width}");
    CheckpointError::Unwritable { format, what, way_out: "write .setun or safetensors" }
}

pub(super) fn zero_scale(name: &str) -> CheckpointError {
    CheckpointError::Scale { tensor: name.to_owned(), found: 0.0 }
}
