//! `TQ1_0`: 256 weights and a scale in 54 bytes.
//!
//! Base 3, the first weight highest: 32 bytes of five weights that are 32 apart, 16 bytes of five
//! that are 16 apart, 4 bytes of four that are 4 apart; then an `f16`.

use setun_ops::{
    TernaryMatrix,
    ternary::{BLOCK_COLUMNS, code_at},
};

use super::{
    encode::{self, COLUMNS},
    rows::{self, RowFormat},
};
use crate::error::CheckpointError;

const CODES: usize = 52;
const BYTES: usize = CODES + 2;

/// Runs of bytes: how many, and how many weights each of them has.
const RUNS: [(usize, usize); 3] = [(32, 5), (16, 5), (4, 4)];

pub(super) const FORM: RowFormat = RowFormat {
    group: Some(COLUMNS),
    tail: 0,
    decode: |stored, packed, scales| {
        for ((block, stored), scale) in stored.chunks_exact(BYTES).enumerate().zip(scales) {
            let codes = decode_block(&stored[..CODES]);
            for (half, codes) in codes.chunks_exact(BLOCK_COLUMNS).enumerate() {
                packed.set(2 * block + half, codes);
            }
            *scale = rows::scale(&stored[CODES..]);
        }
    },
};

fn decode_block(stored: &[u8]) -> [u8; COLUMNS] {
    let mut codes = [0; COLUMNS];
    let (mut first, mut column) = (0, 0);
    for (bytes, digits) in RUNS {
        for digit in 0..digits {
            let stored = &stored[first..first + bytes];
            for (code, byte) in codes[column..].iter_mut().zip(stored) {
                *code = rows::trit(*byte, digit);
            }
            column += bytes;
        }
        first += bytes;
    }
    codes
}

/// The bytes of a matrix.
///
/// # Errors
///
/// If its columns are no multiple of 256, or a scale is not one that an `f16` can hold, or is of
/// groups that are no multiple of 256 columns; `name` is for messages.
pub fn encode(name: &str, matrix: &TernaryMatrix) -> Result<Vec<u8>, CheckpointError> {
    encode::blocks(name, "TQ1_0", matrix, CODES, encode_block)
}

fn encode_block(codes: &[u8], stored: &mut [u8]) {
    let (mut first, mut column) = (0, 0);
    for (bytes, digits) in RUNS {
        for (index, byte) in stored[first..first + bytes].iter_mut().enumerate() {
            let digit = |digit| u16::from(code_at(codes, column + digit * bytes + index));
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
