//! Checks of shapes and types against the headers.

use setun_checkpoint::{CheckpointError, Dtype, TensorInfo, blocks, dense, dtype::FLOATS};
use setun_ops::weight::ScaleKind;

use super::infos::StorageFormat;

/// A gain or a bias: floats, or blocks of integers.
pub(super) fn check_vector(info: &TensorInfo, len: usize) -> Result<(), CheckpointError> {
    info.expect_shape(&[len])?;
    if blocks::TABLES.contains(&info.dtype) { Ok(()) } else { info.expect_dtype(&FLOATS) }
}

pub(super) fn check_weight(
    info: &TensorInfo,
    form: StorageFormat,
    rows: usize,
    columns: usize,
) -> Result<(), CheckpointError> {
    const FIELDS: usize = 4; // rows that share a byte
    if form == StorageFormat::Blocks || info.dtype == Dtype::Base3 {
        return info.expect_shape(&[rows, columns]);
    }
    if form != StorageFormat::Packed {
        info.expect_shape(&[rows, columns])?;
        return info.expect_dtype(&FLOATS);
    }
    if !rows.is_multiple_of(FIELDS) {
        return Err(CheckpointError::PackedRows { tensor: info.name.clone(), rows });
    }
    info.expect_shape(&[rows / FIELDS, columns])
}

/// What the scales beside a matrix are for: all of it, rows, or groups of columns.
pub(super) fn check_scale(
    info: &TensorInfo,
    rows: usize,
    columns: usize,
) -> Result<ScaleKind, CheckpointError> {
    info.expect_dtype(&FLOATS)?;
    let kind = dense::scale_kind(info, columns)?;
    if kind != ScaleKind::Tensor && info.shape[0] != rows {
        info.expect_shape(&[rows, info.shape[1]])?;
    }
    Ok(kind)
}
