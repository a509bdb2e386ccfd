//! Types of two bits: `TQ2_0` and `Q2_0`.

use setun_ops::{
    TernaryMatrix,
    ternary::{BLOCK_BYTES, BLOCK_COLUMNS},
};

use super::{
    encode::{self, COLUMNS},
    rows::{self, PackedRow, RowFormat},
};
use crate::error::CheckpointError;

const CODES: usize = 2 * BLOCK_BYTES;
const BYTES: usize = CODES + 2;

/// 256 weights and a scale in 66 bytes: two blocks of [`setun_ops::ternary`] as they are, and an
/// `f16` behind them.
pub(super) const TQ2_0: RowFormat = RowFormat {
    group: Some(COLUMNS),
    tail: 0,
    decode: |stored, packed, scales| {
        let blocks = stored.chunks_exact(BYTES).zip(packed.bytes.chunks_exact_mut(CODES));
        for ((stored, packed), scale) in blocks.zip(scales) {
            packed.copy_from_slice(&stored[..CODES]);
            *scale = rows::scale(&stored[CODES..]);
        }
    },
};

/// The bytes of a matrix as `TQ2_0`.
///
/// # Errors
///
/// If its columns are no multiple of 256, or a scale is not one that an `f16` can hold, or is of
/// groups that are no multiple of 256 columns; `name` is for messages.
pub fn encode(name: &str, matrix: &TernaryMatrix) -> Result<Vec<u8>, CheckpointError> {
    encode::blocks(name, "TQ2_0", matrix, CODES, |codes, stored| stored.copy_from_slice(codes))
}

/// An `f16`, then codes of 64 weights, four neighbours a byte, the first lowest: 18 bytes.
pub(super) const Q2_0: RowFormat = RowFormat {
    group: Some(64),
    tail: 0,
    decode: |stored, packed, scales| decode_q2_0(stored, packed, scales, 18),
};

/// The same of 128 weights in 34 bytes.
pub(super) const Q2_0_WIDE: RowFormat = RowFormat {
    group: Some(128),
    tail: 0,
    decode: |stored, packed, scales| decode_q2_0(stored, packed, scales, 34),
};

fn decode_q2_0(stored: &[u8], packed: &mut PackedRow<'_>, scales: &mut [f32], bytes: usize) {
    const BEFORE: usize = 2;
    let columns = 4 * (bytes - BEFORE);
    let in_block = BLOCK_COLUMNS / columns;
    let mut scales = scales.iter_mut();
    for (block, stored) in stored.chunks(in_block * bytes).enumerate() {
        let mut codes = [1; BLOCK_COLUMNS];
        let groups = stored.chunks_exact(bytes).zip(codes.chunks_exact_mut(columns));
        for ((stored, codes), scale) in groups.zip(&mut scales) {
            *scale = rows::scale(&stored[..BEFORE]);
            for (codes, byte) in codes.as_chunks_mut::<4>().0.iter_mut().zip(&stored[BEFORE..]) {
                *codes = [0, 2, 4, 6].map(|shift| byte >> shift & 0b11);
            }
        }
        packed.set(block, &codes[..stored.len() / bytes * columns]);
    }
}
