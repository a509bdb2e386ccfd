//! Types of two bits: `TQ2_0`, and `Q2_0` in groups of 64 or of 128, which is `PQ2_0` as well.

use setun_ops::ternary::{BLOCK_BYTES, BLOCK_COLUMNS, PLANE_COLUMNS, ZERO_WEIGHTS};

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

/// The planes of a block, each eight bytes of four neighbours.
fn encode_q2_0(row: &[u8], first: usize, stored: &mut [u8]) {
    // Each of the four codes of a word moves to its place in the highest byte.
    const GATHER: u32 = 1 << 24 | 1 << 18 | 1 << 12 | 1 << 6;
    let block = &row[first / BLOCK_COLUMNS * BLOCK_BYTES..][..BLOCK_BYTES];
    let (words, _) = block.as_chunks::<4>();
    let first_plane = first % BLOCK_COLUMNS / PLANE_COLUMNS;
    for (plane, stored) in (first_plane..).zip(stored.chunks_exact_mut(PLANE_COLUMNS / 4)) {
        for (word, byte) in words.iter().zip(stored) {
            let codes = u32::from_le_bytes(*word) >> (2 * plane) & 0x0303_0303;
            [.., *byte] = codes.wrapping_mul(GATHER).to_le_bytes();
        }
    }
}
