//! `TQ2_0`: 256 weights and a scale in 66 bytes.
//!
//! The 64 bytes of codes are two blocks of [`setun_ops::ternary`] as they are; the scale is an
//! `f16` behind them.

use setun_ops::{
    TernaryMatrix,
    ternary::{BLOCK_BYTES, row_bytes},
};

use super::{
    encode,
    rows::{self, RowFormat},
};
use crate::{
    error::CheckpointError,
    side_by_side::{RUN_ROWS, side_by_side},
};

const COLUMNS: usize = 256;
const CODES: usize = 2 * BLOCK_BYTES;
const BYTES: usize = CODES + 2;

pub(super) const FORM: RowFormat = RowFormat {
    group: Some(COLUMNS),
    decode: |stored, packed, scales| {
        let blocks = stored.chunks_exact(BYTES).zip(packed.bytes.chunks_exact_mut(CODES));
        for ((stored, packed), scale) in blocks.zip(scales) {
            packed.copy_from_slice(&stored[..CODES]);
            *scale = rows::scale(&stored[CODES..]);
        }
    },
};

/// The bytes of a matrix.
///
/// # Errors
///
/// If its columns are no multiple of 256, or a scale is not one that an `f16` can hold, or is of
/// groups that are no multiple of 256 columns; `name` is for messages.
pub fn encode(name: &str, matrix: &TernaryMatrix) -> Result<Vec<u8>, CheckpointError> {
    let scales = encode::block_scales(name, "TQ2_0", matrix, COLUMNS)?;
    let mut bytes = vec![0; scales.len() * BYTES];
    let groups = matrix.columns() / COLUMNS;
    let stored = bytes.chunks_mut(RUN_ROWS * groups * BYTES);
    let codes = matrix.codes().chunks(RUN_ROWS * row_bytes(matrix.columns()));
    let runs = stored.zip(codes).zip(scales.chunks(RUN_ROWS * groups)).collect();
    side_by_side(runs, |((stored, codes), scales)| {
        let blocks = stored.chunks_exact_mut(BYTES).zip(codes.chunks_exact(CODES));
        for ((stored, codes), scale) in blocks.zip(scales) {
            stored[..CODES].copy_from_slice(codes);
            stored[CODES..].copy_from_slice(&scale.to_le_bytes());
        }
    });
    Ok(bytes)
}
