//! Types of `ik_llama.cpp`: `IQ1_BN` and `IQ2_BN`.

use setun_ops::ternary::BLOCK_COLUMNS;

use super::rows::{self, RowFormat, decode_strided};

/// Rows of an `f32`, then blocks of 64 weights in 16 bytes, the first in the lowest bits.
pub(super) const IQ2_BN: RowFormat = RowFormat {
    group: None,
    tail: 0,
    decode: |stored, packed, scales| {
        let (scale, stored) = stored.split_at(4);
        scales[0] = f32::from_le_bytes([scale[0], scale[1], scale[2], scale[3]]);
        decode_strided(stored, packed, [0, 2, 4, 6]);
    },
};

/// Rows of an `f16`, then blocks of 64 weights in 13 bytes.
///
/// Base 3, the first weight lowest: three bytes hold the first 15 of 16 weights, four times, and
/// the last byte those that are left out.
pub(super) const IQ1_BN: RowFormat = RowFormat {
    group: None,
    tail: 0,
    decode: |stored, packed, scales| {
        const BYTES: usize = 13;
        const COLUMNS: usize = 64;
        let (scale, stored) = stored.split_at(2);
        scales[0] = rows::scale(scale);
        for (block, stored) in stored.chunks(2 * BYTES).enumerate() {
            let mut codes = [1; BLOCK_COLUMNS];
            let halves = stored.chunks_exact(BYTES).zip(codes.chunks_exact_mut(COLUMNS));
            halves.for_each(|(stored, codes)| decode_iq1_bn(stored, codes));
            packed.set(block, &codes[..stored.len() / BYTES * COLUMNS]);
        }
    },
};

fn decode_iq1_bn(stored: &[u8], codes: &mut [u8]) {
    const LOWEST: usize = 4; // the digit that comes last
    for (part, codes) in codes.chunks_exact_mut(16).enumerate() {
        for (index, code) in codes[..15].iter_mut().enumerate() {
            *code = rows::trit(stored[3 * part + index / 5], LOWEST - index % 5);
        }
        codes[15] = rows::trit(stored[12], LOWEST - part);
    }
}
