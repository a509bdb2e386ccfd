//! Codes with their scales after them, as readers put them together whose formats keep the two
//! apart.
//!
//! First the codes in the layout of [`setun_ops::ternary`], then what the scales are for, then the
//! scales, all little-endian:
//!
//! ```text
//! [rows, row_bytes(columns)]  u8    codes
//! 1                           u32   columns of a group; 0: all of the matrix, 2³² − 1: a row
//! [groups]                    f32   scales
//! ```
//!
//! Bytes after the scales are padding, since a [list](crate::tensor_list) has a length before it has
//! the scales.

use setun_ops::{
    aligned::Aligned,
    ternary::{Scales, row_bytes},
};

use crate::{
    error::CheckpointError,
    tensor::{Tensor, TensorData},
};

const WHOLE: u32 = 0;
const ROWS: u32 = u32::MAX;

/// The elements of a tensor of these codes and scales.
#[cfg(feature = "onnx")]
pub(crate) fn join(
    mut codes: Aligned<u8>,
    scales: &Scales,
) -> Result<TensorData, setun_ops::aligned::NoMemory> {
    let (kind, values) = match scales {
        Scales::Tensor(scale) => (WHOLE, std::slice::from_ref(scale)),
        Scales::Rows(values) => (ROWS, values.as_slice()),
        Scales::ColumnGroups { columns, values } => {
            (u32::try_from(*columns).unwrap_or(ROWS), values.as_slice())
        }
    };
    codes.reserve(size_of::<u32>() + size_of_val(values))?;
    codes.extend_from_slice(&kind.to_le_bytes())?;
    for value in values {
        codes.extend_from_slice(&value.to_le_bytes())?;
    }
    Ok(TensorData::Bytes(codes))
}

/// Codes and scales of a tensor `[rows, columns]`.
///
/// # Errors
///
/// If it is no matrix, or of another length than its parts.
pub(crate) fn split(tensor: &Tensor) -> Result<(Aligned<u8>, Scales), CheckpointError> {
    let info = &tensor.info;
    let (rows, columns) = info.expect_matrix()?;
    let TensorData::Bytes(bytes) = &tensor.data else {
        return Err(info.rank("codes and scales as bytes"));
    };
    let wrong = || info.rank("as many codes and scales as it has places");
    let length = rows.saturating_mul(row_bytes(columns));
    let (stored, rest) = bytes.split_at_checked(length).ok_or_else(wrong)?;
    let (kind, values) = rest.split_first_chunk().ok_or_else(wrong)?;
    let (values, []) = values.as_chunks() else {
        return Err(wrong());
    };
    let mut values: Vec<_> = values.iter().copied().map(f32::from_le_bytes).collect();
    let kind = u32::from_le_bytes(*kind);
    let group = kind as usize;
    let expected = match kind {
        WHOLE => 1,
        ROWS => rows,
        _ => rows * columns.div_ceil(group),
    };
    if values.len() < expected {
        return Err(wrong());
    }
    values.truncate(expected);
    let mut codes = info.zeroed(rows, row_bytes(columns))?;
    codes.copy_from_slice(stored);
    let scales = match kind {
        WHOLE => Scales::Tensor(values.remove(0)),
        ROWS => Scales::Rows(values),
        _ => Scales::ColumnGroups { columns: group, values },
    };
    Ok((codes, scales))
}
