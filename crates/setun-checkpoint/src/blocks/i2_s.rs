//! `I2_S`: codes over the whole tensor, then one scale.
//!
//! A block of 128 weights has 32 bytes; byte `j` holds weights `j`, `j + 32`, `j + 64` and
//! `j + 96`, the first in the highest bits. That is a block of [`setun_ops::ternary`] with the
//! four fields of each byte reversed. The narrow form has 64 weights in 16 bytes.

use setun_ops::{
    TernaryMatrix,
    ternary::{BLOCK_COLUMNS, Scales, row_bytes},
};

use super::rows::{RowFormat, decode_strided};
use crate::{
    dtype::I2S_TAIL,
    error::CheckpointError,
    side_by_side::{RUN_ROWS, side_by_side},
};

pub(super) const WIDE: RowFormat = RowFormat {
    group: None,
    tail: I2S_TAIL,
    decode: |stored, packed, _| reverse_fields(stored, packed.bytes),
};

pub(super) const NARROW: RowFormat = RowFormat {
    group: None,
    tail: I2S_TAIL,
    decode: |stored, packed, _| decode_strided(stored, packed, [6, 4, 2, 0]),
};

/// Exchanges the four fields of each byte: the first with the last, the two between.
fn reverse_fields(from: &[u8], to: &mut [u8]) {
    const FIRST: u64 = 0x0303_0303_0303_0303;
    const SECOND: u64 = 0x0c0c_0c0c_0c0c_0c0c;
    let words = from.as_chunks::<8>().0.iter().zip(to.as_chunks_mut::<8>().0);
    for (from, to) in words {
        let word = u64::from_le_bytes(*from);
        let outer = (word & FIRST) << 6 | word >> 6 & FIRST;
        let inner = (word & SECOND) << 2 | word >> 2 & SECOND;
        *to = (outer | inner).to_le_bytes();
    }
}

/// The bytes of a matrix that has one scale.
///
/// # Errors
///
/// If its columns are no multiple of 128, or it has several scales, or one of zero; `name` is for
/// messages.
pub fn encode(name: &str, matrix: &TernaryMatrix) -> Result<Vec<u8>, CheckpointError> {
    let columns = matrix.columns();
    if !columns.is_multiple_of(BLOCK_COLUMNS) {
        return Err(super::rows_of_blocks(name, "I2_S", columns, BLOCK_COLUMNS));
    }
    let scale = match matrix.scales() {
        Scales::Tensor(scale) if *scale != 0.0 => *scale,
        Scales::Tensor(_) => return Err(super::zero_scale(name)),
        _ => {
            return Err(CheckpointError::Unwritable {
                format: "I2_S",
                what: format!("the scales by row or group of `{name}`"),
                way_out: "write TQ2_0, TQ1_0 or .setun",
            });
        }
    };
    let codes = matrix.codes();
    let mut bytes = vec![0; codes.len() + I2S_TAIL];
    let run = RUN_ROWS * row_bytes(columns);
    let runs = codes.chunks(run).zip(bytes[..codes.len()].chunks_mut(run)).collect();
    side_by_side(runs, |(from, to)| reverse_fields(from, to));
    bytes[codes.len()..][..4].copy_from_slice(&scale.to_le_bytes());
    Ok(bytes)
}
