//! Encoding of blocks of weights, of which each has a scale in `f16` before or behind its codes.

use half::f16;
use setun_ops::{TernaryMatrix, ternary::row_bytes};

use crate::{
    dtype::Dtype,
    error::CheckpointError,
    scales::by_group,
    side_by_side::{RUN_ROWS, side_by_side},
};

/// The encoding of a block.
pub(crate) struct BlockFormat {
    /// Weights of a block.
    pub(crate) columns: usize,
    /// Bytes of its codes.
    pub(super) code_bytes: usize,
    /// Whether the scale stands before them.
    pub(super) scale_first: bool,
    /// From a row in the layout of [`setun_ops::ternary`] and the first column of a block to the
    /// bytes of its codes.
    pub(super) encode: fn(&[u8], usize, &mut [u8]),
}

/// The bytes of a matrix.
pub(super) fn blocks(
    name: &str,
    dtype: Dtype,
    matrix: &TernaryMatrix,
    format: &BlockFormat,
) -> Result<Vec<u8>, CheckpointError> {
    let BlockFormat { columns: width, code_bytes, scale_first, encode } = *format;
    let scales = block_scales(name, dtype, matrix, width)?;
    let block = code_bytes + size_of::<f16>();
    let mut bytes = vec![0; scales.len() * block];
    let (groups, row) = (matrix.columns() / width, row_bytes(matrix.columns()));
    let stored = bytes.chunks_mut(RUN_ROWS * groups * block);
    let codes = matrix.codes().chunks(RUN_ROWS * row);
    let runs = stored.zip(codes).zip(scales.chunks(RUN_ROWS * groups)).collect();
    side_by_side(runs, |((stored, codes), scales)| {
        let rows = stored.chunks_exact_mut(groups * block).zip(codes.chunks_exact(row));
        for ((stored, codes), scales) in rows.zip(scales.chunks_exact(groups)) {
            let blocks = stored.chunks_exact_mut(block).zip(scales).enumerate();
            for (group, (stored, scale)) in blocks {
                let (before, after) = if scale_first { (2, 0) } else { (0, code_bytes) };
                encode(codes, group * width, &mut stored[before..before + code_bytes]);
                stored[after..after + 2].copy_from_slice(&scale.to_le_bytes());
            }
        }
    });
    Ok(bytes)
}

/// The scale of each block of `width` columns, row by row.
fn block_scales(
    name: &str,
    dtype: Dtype,
    matrix: &TernaryMatrix,
    width: usize,
) -> Result<Vec<f16>, CheckpointError> {
    let (rows, columns) = (matrix.rows(), matrix.columns());
    if !columns.is_multiple_of(width) {
        return Err(rows_of_blocks(name, name_of(dtype), columns, width));
    }
    let scales = by_group(matrix.scales(), rows, columns, width);
    let scales = scales.ok_or_else(|| CheckpointError::Unwritable {
        format: name_of(dtype),
        what: format!("the scales of `{name}`, by groups that are no multiple of {width} columns"),
        way_out: "write .setun",
    })?;
    if scales.contains(&0.0) {
        return Err(zero_scale(name));
    }
    let exact = |scale: f32| exact_f16(scale).ok_or_else(|| inexact(name, name_of(dtype), scale));
    scales.into_iter().map(exact).collect()
}

/// The name of a type in errors.
fn name_of(dtype: Dtype) -> &'static str {
    match dtype {
        Dtype::Tq1_0 => "TQ1_0",
        Dtype::Tq2_0 => "TQ2_0",
        Dtype::Pq2_0 => "PQ2_0",
        Dtype::Ptq1_0 => "PTQ1_0",
        _ => "Q2_0",
    }
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
