//! `IQ1_BN`: rows of an `f16`, then blocks of 64 weights in 13 bytes.
//!
//! Base 3, the first weight lowest: three bytes hold the first 15 of 16 weights, four times, and
//! the last byte those that are left out.

use setun_ops::ternary::BLOCK_COLUMNS;

use super::rows::{self, RowFormat};

const BYTES: usize = 13;
const COLUMNS: usize = 64;

pub(super) const FORM: RowFormat = RowFormat {
    group: None,
    decode: |stored, packed, scales| {
        let (scale, stored) = stored.split_at(2);
        scales[0] = rows::scale(scale);
        for (block, stored) in stored.chunks(2 * BYTES).enumerate() {
            let mut codes = [1; BLOCK_COLUMNS];
            let halves = stored.chunks_exact(BYTES).zip(codes.chunks_exact_mut(COLUMNS));
            halves.for_each(|(stored, codes)| decode_block(stored, codes));
            packed.set(block, &codes[..stored.len() / BYTES * COLUMNS]);
        }
    },
};

fn decode_block(stored: &[u8], codes: &mut [u8]) {
    const LOWEST: usize = 4; // the digit that comes last
    for (part, codes) in codes.chunks_exact_mut(16).enumerate() {
        for (index, code) in codes[..15].iter_mut().enumerate() {
            *code = rows::trit(stored[3 * part + index / 5], LOWEST - index % 5);
        }
        codes[15] = rows::trit(stored[12], LOWEST - part);
    }
}
