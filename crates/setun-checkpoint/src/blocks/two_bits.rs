//! Types of two bits: `TQ2_0`, and `Q2_0` in groups of 64 or of 128, which is `PQ2_0` as well.

use setun_ops::ternary::{BLOCK_BYTES, BLOCK_COLUMNS, ZERO_WEIGHTS, code_at};

use super::{
    encode::BlockFormat,
    rows::{self, PackedRow, RowFormat},
};

/// Weights and bytes of codes of a block of `TQ2_0`.
const COLUMNS: usize = 2 * BLOCK_COLUMNS;
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

/// The same, to be written.
pub(super) const BLOCKS_OF_256: BlockFormat = BlockFormat {
    columns: COLUMNS,
    code_bytes: CODES,
    scale_first: false,
    encode: |row, first, stored| stored.copy_from_slice(&row[first / 4..][..CODES]),
};

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
    let of_group = bytes - BEFORE;
    let in_block = BLOCK_BYTES / of_group;
    let mut scales = scales.iter_mut();
    let blocks = stored.chunks(in_block * bytes).zip(packed.bytes.chunks_exact_mut(BLOCK_BYTES));
    for (stored, packed) in blocks {
        let mut neighbours = [ZERO_WEIGHTS; BLOCK_BYTES];
        let groups = stored.chunks_exact(bytes).zip(neighbours.chunks_exact_mut(of_group));
        for ((stored, neighbours), scale) in groups.zip(&mut scales) {
            let (before, codes) = stored.split_at(BEFORE);
            *scale = rows::scale(before);
            neighbours.copy_from_slice(codes);
        }
        rows::set_neighbours(&neighbours, packed);
    }
}

/// See [`Q2_0`].
pub(super) const BLOCKS_OF_64: BlockFormat =
    BlockFormat { columns: 64, code_bytes: 16, scale_first: true, encode: encode_q2_0 };

/// See [`Q2_0_WIDE`].
pub(super) const BLOCKS_OF_128: BlockFormat =
    BlockFormat { columns: 128, code_bytes: 32, scale_first: true, encode: encode_q2_0 };

fn encode_q2_0(row: &[u8], first: usize, stored: &mut [u8]) {
    for (column, byte) in (first..).step_by(4).zip(stored) {
        *byte = (0..4).fold(0, |byte, place| byte | code_at(row, column + place) << (2 * place));
    }
}
