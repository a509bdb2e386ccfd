//! `Q2_0`: an `f16`, then codes of two bits, four neighbours a byte, the first lowest. There are
//! 64 weights in 18 bytes, or 128 in 34.

use setun_ops::ternary::BLOCK_COLUMNS;

use super::rows::{self, PackedRow, RowFormat};

pub(super) const NARROW: RowFormat = RowFormat {
    group: Some(64),
    decode: |stored, packed, scales| decode(stored, packed, scales, 18),
};

pub(super) const WIDE: RowFormat = RowFormat {
    group: Some(128),
    decode: |stored, packed, scales| decode(stored, packed, scales, 34),
};

fn decode(stored: &[u8], packed: &mut PackedRow<'_>, scales: &mut [f32], bytes: usize) {
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
