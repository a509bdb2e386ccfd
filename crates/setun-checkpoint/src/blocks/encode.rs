//! Encoding of blocks of 256 weights, of which each has a scale in `f16` behind its codes.

use half::f16;
use setun_ops::{TernaryMatrix, ternary::row_bytes};

use crate::{
    error::CheckpointError,
    scales::by_group,
    side_by_side::{RUN_ROWS, side_by_side},
};

/// Weights of a block.
pub(super) const COLUMNS: usize = 256;

/// The bytes of a matrix, of whose blocks `encode` makes `code_bytes` bytes from codes in the layout
/// of [`setun_ops::ternary`].
pub(super) fn blocks(
    name: &str,
    format: &'static str,
    matrix: &TernaryMatrix,
    code_bytes: usize,
    encode: fn(&[u8], &mut [u8]),
) -> Result<Vec<u8>, CheckpointError> {
    let scales = block_scales(name, format, matrix, COLUMNS)?;
    let block = code_bytes + size_of::<f16>();
    let mut bytes = vec![0; scales.len() * block];
    let groups = matrix.columns() / COLUMNS;
    let stored = bytes.chunks_mut(RUN_ROWS * groups * block);
    let codes = matrix.codes().chunks(RUN_ROWS * row_bytes(matrix.columns()));
    let runs = stored.zip(codes).zip(scales.chunks(RUN_ROWS * groups)).collect();
    side_by_side(runs, |((stored, codes), scales)| {
        let blocks = codes.chunks_exact(row_bytes(COLUMNS)); // each is a row of 256 columns
        for ((stored, codes), scale) in stored.chunks_exact_mut(block).zip(blocks).zip(scales) {
            encode(codes, &mut stored[..code_bytes]);
            stored[code_bytes..].copy_from_slice(&scale.to_le_bytes());
        }
    });
    Ok(bytes)
}

/// The scale of each block of `width` columns, row by row.
fn block_scales(
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
