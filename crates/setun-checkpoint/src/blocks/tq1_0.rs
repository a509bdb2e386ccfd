//! `TQ1_0`: 256 weights and a scale in 54 bytes; `PTQ1_0`: half of each.
//!
//! Base 3, the first weight highest: 32 bytes of five weights that are 32 apart, 16 bytes of five
//! that are 16 apart, 4 bytes of four that are 4 apart; then an `f16`. In `PTQ1_0` all runs and
//! distances are half as long.

use setun_ops::ternary::{BLOCK_COLUMNS, code_at};

use super::{
    encode::BlockFormat,
    rows::{self, PackedRow, RowFormat},
};

/// Weights and bytes of codes of the whole block.
const COLUMNS: usize = 256;
const CODES: usize = 52;

/// Runs of bytes: how many, and how many weights each of them has.
const RUNS: [(usize, usize); 3] = [(32, 5), (16, 5), (4, 4)];

pub(super) const FORM: RowFormat = RowFormat {
    group: Some(COLUMNS),
    tail: 0,
    decode: |stored, packed, scales| decode(stored, packed, scales, 1),
};

pub(super) const HALF: RowFormat = RowFormat {
    group: Some(COLUMNS / 2),
    tail: 0,
    decode: |stored, packed, scales| decode(stored, packed, scales, 2),
};

/// Blocks that are a `part`th of the whole.
fn decode(stored: &[u8], packed: &mut PackedRow<'_>, scales: &mut [f32], part: usize) {
    let (code_bytes, columns) = (CODES / part, COLUMNS / part);
    let in_block = columns / BLOCK_COLUMNS;
    let mut codes = [0; COLUMNS];
    for ((block, stored), scale) in stored.chunks_exact(code_bytes + 2).enumerate().zip(scales) {
        let (stored, scale_bytes) = stored.split_at(code_bytes);
        decode_block(stored, &mut codes, part);
        for (half, codes) in codes[..columns].chunks_exact(BLOCK_COLUMNS).enumerate() {
            packed.set(in_block * block + half, codes);
        }
        *scale = rows::scale(scale_bytes);
    }
}

fn decode_block(stored: &[u8], codes: &mut [u8; COLUMNS], part: usize) {
    let (mut first, mut column) = (0, 0);
    for (bytes, digits) in RUNS {
        let bytes = bytes / part;
        for digit in 0..digits {
            let stored = &stored[first..first + bytes];
            for (code, byte) in codes[column..].iter_mut().zip(stored) {
                *code = rows::trit(*byte, digit);
            }
            column += bytes;
        }
        first += bytes;
    }
}

pub(super) const TQ1_0: BlockFormat = BlockFormat {
    columns: COLUMNS,
    code_bytes: CODES,
    scale_first: false,
    encode: |row, first, stored| encode_block(row, first, stored, 1),
};

pub(super) const PTQ1_0: BlockFormat = BlockFormat {
    columns: COLUMNS / 2,
    code_bytes: CODES / 2,
    scale_first: false,
    encode: |row, first, stored| encode_block(row, first, stored, 2),
};

fn encode_block(row: &[u8], first_column: usize, stored: &mut [u8], part: usize) {
    let (mut first, mut column) = (0, first_column);
    for (bytes, digits) in RUNS {
        let bytes = bytes / part;
        for (index, byte) in stored[first..first + bytes].iter_mut().enumerate() {
            let digit = |digit| u16::from(code_at(row, column + digit * bytes + index));
            let number = (0..digits).fold(0, |number, next| number * 3 + digit(next));
            let number = if digits < 5 { number * 3 } else { number };
            #[expect(clippy::cast_possible_truncation, reason = "243 fit below 256")]
            let rounded_up = (number * 256).div_ceil(243) as u8;
            *byte = rounded_up;
        }
        first += bytes;
        column += bytes * digits;
    }
}
