//! `IQ2_BN`: rows of an `f32`, then blocks of 64 weights in 16 bytes; byte `j` holds weights `j`,
//! `j + 16`, `j + 32` and `j + 48`, the first lowest.

use setun_ops::ternary::BLOCK_COLUMNS;

use super::rows::RowFormat;

const BYTES: usize = 16;

pub(super) const FORM: RowFormat = RowFormat {
    group: None,
    decode: |stored, packed, scales| {
        let (scale, stored) = stored.split_at(4);
        scales[0] = f32::from_le_bytes([scale[0], scale[1], scale[2], scale[3]]);
        for (block, stored) in stored.chunks(2 * BYTES).enumerate() {
            let mut codes = [1; BLOCK_COLUMNS];
            for (half, stored) in stored.chunks_exact(BYTES).enumerate() {
                for (index, byte) in stored.iter().enumerate() {
                    for field in 0..4 {
                        let code = byte >> (2 * field) & 0b11;
                        codes[half * 4 * BYTES + field * BYTES + index] = code;
                    }
                }
            }
            packed.set(block, &codes[..stored.len() * 4]);
        }
    },
};
