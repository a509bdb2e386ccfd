//! Ternary codes at five a byte, to and from rows of [`setun_ops`]: 1.6 bits a weight.
//!
//! A row of `columns` codes (0, 1, 2 for −1, 0, +1) is `columns.div_ceil(5)` bytes; byte `b` is
//!
//! ```text
//! c[5b] + 3·c[5b+1] + 9·c[5b+2] + 27·c[5b+3] + 81·c[5b+4]        0..=242
//! ```
//!
//! A last byte with room beyond the row has code 1 there. So a matrix has one form only, and each
//! other byte is an error.

use setun_ops::{
    TernaryMatrix,
    aligned::Aligned,
    ternary::{BLOCK_BYTES, BLOCK_COLUMNS, PLANE_COLUMNS, padded_columns, row_bytes},
};

use crate::{
    dtype::Dtype,
    error::CheckpointError,
    side_by_side::{RUN_ROWS, side_by_side},
    tensor::{Tensor, TensorData, TensorInfo},
};

/// Codes of a byte.
const CODES: usize = 5;

/// What each code of a byte counts.
const POWERS: [u8; CODES] = [1, 3, 9, 27, 81];

/// First byte that stands for no codes.
const END: u8 = 243;

/// A code of padding, weight 0.
const PADDING: u8 = 1;

/// The codes of each byte, one in each of the lowest five bytes of a word, the first lowest.
/// A word is stored whole, and what follows its five codes is overwritten by the next.
static WORDS: [u64; 256] = words();

const fn words() -> [u64; 256] {
    let mut words = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut rest, mut place) = (byte, 0);
        while place < CODES {
            words[byte] |= ((rest % 3) as u64) << (8 * place);
            rest /= 3;
            place += 1;
        }
        byte += 1;
    }
    words
}

/// Packed rows `[rows, row_bytes(columns)]` in the layout of [`setun_ops::ternary`], padding
/// included, from a tensor of [`Dtype::Base3`], `[rows, columns]`.
///
/// # Errors
///
/// If type or shape differ from that, or a byte or its padding is none of the format: the error
/// names the first row with one, and the first column of the byte.
pub fn unpack(tensor: &Tensor) -> Result<Aligned<u8>, CheckpointError> {
    let info = &tensor.info;
    info.expect_dtype(&[Dtype::Base3])?;
    let (rows, columns) = info.expect_matrix()?;
    let TensorData::Bytes(bytes) = &tensor.data else {
        return Err(info.rank("bytes"));
    };
    check(info, bytes, columns)?;
    let mut codes = info.zeroed(rows, row_bytes(columns))?;
    let stored = (RUN_ROWS * columns.div_ceil(CODES)).max(1);
    let packed = (RUN_ROWS * row_bytes(columns)).max(1);
    let runs = bytes.chunks(stored).zip(codes.chunks_mut(packed)).collect();
    side_by_side(runs, |(bytes, codes)| unpack_run(bytes, columns, codes));
    Ok(codes)
}

/// Some rows.
fn unpack_run(bytes: &[u8], columns: usize, codes: &mut [u8]) {
    const WORD: usize = size_of::<u64>();
    let mut wide = vec![PADDING; padded_columns(columns) + WORD];
    let rows = bytes.chunks_exact(columns.div_ceil(CODES).max(1));
    for (row, packed) in rows.zip(codes.chunks_exact_mut(row_bytes(columns).max(1))) {
        for (place, byte) in row.iter().enumerate() {
            // Of a fixed length: else each is a call.
            if let Some(word) = wide[place * CODES..].first_chunk_mut::<WORD>() {
                *word = WORDS[usize::from(*byte)].to_le_bytes();
            }
        }
        wide[columns..].fill(PADDING);
        let blocks = packed.as_chunks_mut::<BLOCK_BYTES>().0;
        for (wide, block) in wide.as_chunks::<BLOCK_COLUMNS>().0.iter().zip(blocks) {
            *block = pack_block(wide);
        }
    }
}

/// 128 codes, one a byte, as the 32 bytes of a block.
fn pack_block(wide: &[u8; BLOCK_COLUMNS]) -> [u8; BLOCK_BYTES] {
    let at = |byte: usize, plane: usize| wide[plane * PLANE_COLUMNS + byte] << (2 * plane);
    std::array::from_fn(|byte| at(byte, 0) | at(byte, 1) | at(byte, 2) | at(byte, 3))
}

/// The bytes of [`Dtype::Base3`], row by row. Scales are not part of them.
#[must_use]
pub fn pack(matrix: &TernaryMatrix) -> Vec<u8> {
    let columns = matrix.columns();
    let stored = columns.div_ceil(CODES);
    let mut bytes = vec![0; matrix.rows() * stored];
    let packed = matrix.codes().chunks(RUN_ROWS * row_bytes(columns));
    let runs = packed.zip(bytes.chunks_mut(RUN_ROWS * stored)).collect();
    side_by_side(runs, |(packed, bytes)| pack_run(packed, columns, bytes));
    bytes
}

/// Some rows.
fn pack_run(packed: &[u8], columns: usize, bytes: &mut [u8]) {
    let stored = columns.div_ceil(CODES);
    let mut wide = vec![PADDING; padded_columns(columns).max(stored * CODES)];
    for (packed, bytes) in
        packed.chunks_exact(row_bytes(columns)).zip(bytes.chunks_exact_mut(stored))
    {
        for (block, wide) in
            packed.chunks_exact(BLOCK_BYTES).zip(wide.chunks_exact_mut(BLOCK_COLUMNS))
        {
            for (plane, wide) in wide.chunks_exact_mut(PLANE_COLUMNS).enumerate() {
                for (code, byte) in wide.iter_mut().zip(block) {
                    *code = byte >> (2 * plane) & 0b11;
                }
            }
        }
        for (byte, codes) in bytes.iter_mut().zip(wide.as_chunks::<CODES>().0) {
            *byte = codes.iter().zip(POWERS).map(|(code, power)| code * power).sum();
        }
    }
}

/// Every byte must stand for codes, and the last of each row for codes 1 beyond the row.
fn check(info: &TensorInfo, bytes: &[u8], columns: usize) -> Result<(), CheckpointError> {
    let stored = columns.div_ceil(CODES).max(1);
    let of_last = columns.saturating_sub((stored - 1) * CODES);
    for (row, bytes) in bytes.chunks_exact(stored).enumerate() {
        // Without an early end the scan runs in vectors.
        if bytes.iter().fold(0, |most: u8, &byte| most.max(byte)) >= END {
            let place = bytes.iter().position(|&byte| byte >= END).unwrap_or(0);
            return Err(info.not_ternary(row, place * CODES));
        }
        let last = WORDS[usize::from(bytes[stored - 1])].to_le_bytes();
        if let Some(place) = last[of_last..CODES].iter().position(|&code| code != PADDING) {
            let (tensor, column) = (info.name.clone(), columns + place);
            return Err(CheckpointError::Padding { tensor, row, column });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};
    use setun_ops::ternary::{Scales, pack_row};

    use super::*;

    fn tensor(rows: usize, columns: usize, bytes: Vec<u8>) -> Tensor {
        Tensor::new("w", Dtype::Base3, &[rows, columns], TensorData::Bytes(bytes.into()))
    }

    /// The bytes, digit by digit as the format defines them.
    fn defined(codes: &[u8]) -> Vec<u8> {
        let byte = |codes: &[u8]| {
            (0..CODES).rev().fold(0, |all, at| 3 * all + codes.get(at).copied().unwrap_or(1))
        };
        codes.chunks(CODES).map(byte).collect()
    }

    proptest! {
        #[test]
        fn rows_are_those_of_the_format(
            rows in 1..70_usize,
            columns in 1..300_usize,
            seed in vec(0..3_u8, 1..500),
        ) {
            let codes: Vec<_> = seed.iter().copied().cycle().take(rows * columns).collect();
            let mut packed = vec![0; rows * row_bytes(columns)];
            for (codes, packed) in codes.chunks(columns).zip(packed.chunks_mut(row_bytes(columns))) {
                pack_row(codes, packed);
            }
            let bytes: Vec<_> = codes.chunks(columns).flat_map(defined).collect();
            let unpacked = unpack(&tensor(rows, columns, bytes.clone()));
            prop_assert_eq!(unpacked, Ok(packed.clone().into()));
            let matrix = TernaryMatrix::new(rows, columns, packed, Scales::Tensor(1.0)).unwrap();
            prop_assert_eq!(pack(&matrix), bytes);
        }
    }

    #[test]
    fn bytes_that_are_no_codes_are_named() {
        for byte in END..=255 {
            let mut bytes = vec![121; 6]; // all zero weights
            bytes[4] = byte;
            let (tensor_name, row, column) = ("w".to_owned(), 1, 5);
            let expected = CheckpointError::NotTernary { tensor: tensor_name, row, column };
            assert_eq!(unpack(&tensor(2, 11, bytes)), Err(expected));
        }
    }

    #[test]
    fn every_other_padding_is_refused() {
        for columns in 1..=10 {
            let width = columns - (columns - 1) / CODES * CODES;
            let canonical = |byte: u8| {
                let digits = WORDS[usize::from(byte)].to_le_bytes();
                digits[width..CODES].iter().all(|&code| code == 1)
            };
            for byte in 0..END {
                let mut bytes = vec![0; columns.div_ceil(CODES)];
                *bytes.last_mut().unwrap() = byte;
                let found = unpack(&tensor(1, columns, bytes));
                assert_eq!(found.is_ok(), canonical(byte), "{columns} {byte}: {found:?}");
            }
        }
    }
}
