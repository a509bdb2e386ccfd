//! `Q1_0`: signs of one bit.

use setun_ops::ternary::{BLOCK_BYTES, BLOCK_COLUMNS, PLANE_COLUMNS};

use super::rows::{RowFormat, scale};

/// Bytes of a block: a scale, and a bit for each weight.
const BYTES: usize = 2 + BLOCK_COLUMNS / 8;

/// An `f16` and 128 bits, the lowest of a byte first: 1 is the scale, 0 minus the scale. No weight is 0.
pub(super) const Q1_0: RowFormat = RowFormat {
    group: Some(BLOCK_COLUMNS),
    tail: 0,
    decode: |stored, packed, scales| {
        let blocks = stored.chunks_exact(BYTES).zip(packed.bytes.chunks_exact_mut(BLOCK_BYTES));
        for ((stored, packed), out) in blocks.zip(scales) {
            let (before, bits) = stored.split_at(2);
            *out = scale(before);
            decode_block(bits, packed);
        }
    },
};

/// A code is twice the bit, at the place of its plane.
fn decode_block(bits: &[u8], packed: &mut [u8]) {
    let (planes, _) = bits.as_chunks::<{ PLANE_COLUMNS / 8 }>();
    for (column, byte) in packed.iter_mut().enumerate() {
        let bit = |plane: &[u8; PLANE_COLUMNS / 8]| plane[column / 8] >> (column % 8) & 1;
        let codes = planes.iter().rev().fold(0, |codes, plane| codes << 2 | bit(plane) << 1);
        *byte = codes;
    }
}
