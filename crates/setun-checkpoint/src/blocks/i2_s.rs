//! `I2_S`: codes over the whole tensor, then one scale.
//!
//! A block of 128 weights has 32 bytes; byte `j` holds weights `j`, `j + 32`, `j + 64` and
//! `j + 96`, the first in the highest bits. That is a block of [`setun_ops::ternary`] with the
//! four fields of each byte reversed. The narrow form has 64 weights in 16 bytes.

use setun_ops::{
    TernaryMatrix,
    aligned::Aligned,
    ternary::{BLOCK_COLUMNS, Scales, row_bytes},
};

use super::rows::{self, PackedRow};
use crate::{
    dtype::I2S_TAIL,
    error::CheckpointError,
    side_by_side::{RUN_ROWS, side_by_side},
    tensor::Tensor,
};

/// Codes and the one scale.
pub(super) fn unpack(
    tensor: &Tensor,
    decode: fn(&[u8], &mut PackedRow<'_>),
) -> Result<(Aligned<u8>, Scales), CheckpointError> {
    let info = &tensor.info;
    let (rows, columns) = info.expect_matrix()?;
    let bytes = rows::stored_bytes(tensor)?;
    let (stored, tail) = bytes.split_at(bytes.len() - I2S_TAIL);
    let scale = f32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]);
    if !scale.is_finite() {
        return Err(rows::bad_scale(info, scale));
    }
    let row_bytes = row_bytes(columns);
    let mut codes = info.zeroed(rows, row_bytes)?;
    let mut failures = vec![None; rows.div_ceil(RUN_ROWS)];
    let stored_row = (columns / 4).max(1);
    let stored = stored.chunks(RUN_ROWS * stored_row);
    let runs = stored.zip(codes.chunks_mut((RUN_ROWS * row_bytes).max(1))).zip(&mut failures);
    side_by_side(runs.enumerate().collect(), |(run, ((stored, packed), failed))| {
        let rows = stored.chunks_exact(stored_row).zip(packed.chunks_exact_mut(row_bytes.max(1)));
        for (row, (stored, packed)) in (run * RUN_ROWS..).zip(rows) {
            let mut packed = PackedRow { bytes: packed, columns };
            decode(stored, &mut packed);
            if let Some(column) = rows::bad_code(packed.bytes) {
                *failed = Some((row, column));
                return;
            }
        }
    });
    if let Some((row, column)) = failures.into_iter().flatten().next() {
        return Err(rows::not_ternary(info, row, column));
    }
    if scale == 0.0 {
        codes.chunks_exact_mut(row_bytes.max(1)).for_each(rows::clear);
        return Ok((codes, Scales::Tensor(1.0)));
    }
    Ok((codes, Scales::Tensor(scale)))
}

/// A row of whole blocks.
pub(super) fn decode_row(stored: &[u8], packed: &mut PackedRow<'_>) {
    reverse_fields(stored, packed.bytes);
}

/// A row of blocks of 64.
pub(super) fn decode_narrow_row(stored: &[u8], packed: &mut PackedRow<'_>) {
    const BYTES: usize = 16;
    for (block, stored) in stored.chunks(2 * BYTES).enumerate() {
        let mut codes = [1; BLOCK_COLUMNS];
        for (half, stored) in stored.chunks_exact(BYTES).enumerate() {
            for (index, byte) in stored.iter().enumerate() {
                for field in 0..4 {
                    let code = byte >> (6 - 2 * field) & 0b11;
                    codes[half * 4 * BYTES + field * BYTES + index] = code;
                }
            }
        }
        packed.set(block, &codes[..stored.len() * 4]);
    }
}

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
