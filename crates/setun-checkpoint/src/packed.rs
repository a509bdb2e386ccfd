//! Packed ternary weights of Hugging Face checkpoints, to and from rows of [`setun_ops`].
//!
//! In the file, a byte at `[r, column]` of a tensor `[rows / 4, columns]` holds the codes of four
//! rows a quarter of the matrix apart, lowest bits first:
//!
//! ```text
//! bit   7 6     5 4     3 2     1 0
//!      r+3R    r+2R    r+R     r          R = rows / 4
//! ```
//!
//! In [`setun_ops::ternary`] a byte holds four columns of one row, 32 apart. So 4 × 32 bytes of
//! one become 4 × 32 bytes of the other by transposing a 4 × 4 matrix of two-bit fields in each
//! of 32 places, eight places at a time; the way back is the same transposition.

use crate::dtype::Dtype;
use setun_ops::{
    TernaryMatrix,
    aligned::Aligned,
    ternary::{
        BLOCK_BYTES, BLOCK_COLUMNS, PLANE_COLUMNS, ZERO_WEIGHTS, first_three, row_bytes, threes,
    },
};

use crate::{
    error::CheckpointError,
    side_by_side::{RUN_ROWS, side_by_side},
    tensor::{Tensor, TensorData},
};

/// Rows whose codes share a byte in the file.
const FIELDS: usize = 4;

/// The lowest code of each of eight bytes.
const LOW_CODES: u64 = 0x0303_0303_0303_0303;

/// Packed rows `[rows, row_bytes(columns)]` in the layout of [`setun_ops::ternary`], padding
/// included, from a tensor `U8 [rows / 4, columns]`.
///
/// # Errors
///
/// If type or shape differ from that, `rows` is no multiple of 4, or a code is 3.
pub fn unpack(
    tensor: &Tensor,
    rows: usize,
    columns: usize,
) -> Result<Aligned<u8>, CheckpointError> {
    let info = &tensor.info;
    let TensorData::Bytes(bytes) = &tensor.data else {
        return Err(info.expect_dtype(&[Dtype::U8]).err().unwrap_or_else(|| info.rank("bytes")));
    };
    info.expect_dtype(&[Dtype::U8])?;
    if !rows.is_multiple_of(FIELDS) {
        return Err(CheckpointError::PackedRows { tensor: info.name.clone(), rows });
    }
    info.expect_shape(&[rows / FIELDS, columns])?;
    check_codes(tensor, bytes, rows / FIELDS, columns)?;
    let mut codes = info.zeroed(rows, row_bytes(columns))?;
    transpose_rows(bytes, columns, &mut codes);
    Ok(codes)
}

/// From the file's rows to `[rows, row_bytes(columns)]`.
fn transpose_rows(bytes: &[u8], columns: usize, codes: &mut [u8]) {
    let quarter = codes.len() / FIELDS;
    let (upper, lower) = codes.split_at_mut(2 * quarter);
    let (first, second) = upper.split_at_mut(quarter);
    let (third, fourth) = lower.split_at_mut(quarter);
    let row_bytes = row_bytes(columns);
    let run = (RUN_ROWS * row_bytes).max(1);
    let quarters = first.chunks_mut(run).zip(second.chunks_mut(run));
    let quarters = quarters.zip(third.chunks_mut(run).zip(fourth.chunks_mut(run)));
    let runs = bytes.chunks((RUN_ROWS * columns).max(1)).zip(quarters).collect();
    side_by_side(runs, |(bytes, ((first, second), (third, fourth)))| {
        transpose_run(bytes, columns, [first, second, third, fourth]);
    });
}

/// Some rows of the file, to as many of each quarter.
fn transpose_run(bytes: &[u8], columns: usize, quarters: [&mut [u8]; FIELDS]) {
    let row_bytes = row_bytes(columns).max(1);
    let mut quarters = quarters.map(|quarter| quarter.chunks_exact_mut(row_bytes));
    for row in bytes.chunks_exact(columns.max(1)) {
        let mut quarters = quarters.each_mut().map(|rows| rows.next().unwrap_or_default());
        let (blocks, rest) = row.as_chunks();
        let mut padded = [ZERO_WEIGHTS; BLOCK_COLUMNS];
        padded[..rest.len()].copy_from_slice(rest);
        let last = (!rest.is_empty()).then_some(&padded);
        for (block, columns) in blocks.iter().chain(last).enumerate() {
            let transposed = transpose_block(columns);
            for (row, block_of_row) in quarters.iter_mut().zip(transposed.chunks_exact(BLOCK_BYTES))
            {
                row[block * BLOCK_BYTES..][..BLOCK_BYTES].copy_from_slice(block_of_row);
            }
        }
    }
}

/// The bytes `U8 [rows / 4, columns]` of a Hugging Face checkpoint, row by row, from a matrix
/// whose rows are a multiple of 4. Scales are not part of them.
///
/// # Errors
///
/// [`CheckpointError::PackedRows`] if the rows are no multiple of 4; `name` is for its message.
pub fn pack(name: &str, matrix: &TernaryMatrix) -> Result<Vec<u8>, CheckpointError> {
    let (rows, columns) = (matrix.rows(), matrix.columns());
    if !rows.is_multiple_of(FIELDS) {
        return Err(CheckpointError::PackedRows { tensor: name.to_owned(), rows });
    }
    let quarter = rows / FIELDS;
    let mut bytes = Vec::with_capacity(quarter * columns);
    for row in 0..quarter {
        for block in 0..columns.div_ceil(BLOCK_COLUMNS) {
            let mut fields = [0; BLOCK_COLUMNS];
            for (field, out) in fields.chunks_exact_mut(BLOCK_BYTES).enumerate() {
                let codes = matrix.row(row + field * quarter);
                out.copy_from_slice(&codes[block * BLOCK_BYTES..][..BLOCK_BYTES]);
            }
            let width = BLOCK_COLUMNS.min(columns - block * BLOCK_COLUMNS);
            bytes.extend_from_slice(&transpose_block(&fields)[..width]);
        }
    }
    Ok(bytes)
}

/// Exchanges part `p` of four times 32 bytes with field `p` of each byte. Its own inverse.
fn transpose_block(bytes: &[u8; BLOCK_COLUMNS]) -> [u8; BLOCK_COLUMNS] {
    const WORD: usize = size_of::<u64>();
    let mut transposed = [0; BLOCK_COLUMNS];
    for place in (0..PLANE_COLUMNS).step_by(WORD) {
        let word = |part: usize| {
            let mut word = [0; WORD];
            word.copy_from_slice(&bytes[part * PLANE_COLUMNS + place..][..WORD]);
            u64::from_le_bytes(word)
        };
        let words = [word(0), word(1), word(2), word(3)];
        for field in 0..FIELDS {
            let codes = |part: usize| (words[part] >> (2 * field) & LOW_CODES) << (2 * part);
            let word = codes(0) | codes(1) | codes(2) | codes(3);
            transposed[field * PLANE_COLUMNS + place..][..WORD]
                .copy_from_slice(&word.to_le_bytes());
        }
    }
    transposed
}

/// No two bits may hold 3.
fn check_codes(
    tensor: &Tensor,
    bytes: &[u8],
    quarter: usize,
    columns: usize,
) -> Result<(), CheckpointError> {
    for (r, row) in bytes.chunks_exact(columns.max(1)).enumerate() {
        if let Some(column) = first_three(row) {
            let field = threes(row[column]).trailing_zeros() as usize / 2;
            return Err(tensor.info.not_ternary(field * quarter + r, column));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};
    use setun_ops::ternary::{Scales, pack_row};

    use super::*;

    fn tensor(shape: [usize; 2], bytes: Vec<u8>) -> Tensor {
        Tensor::new("w", Dtype::U8, &shape, TensorData::Bytes(bytes.into()))
    }

    /// The file's bytes, code by code as its format defines them.
    fn defined(codes: &[u8], quarter: usize, columns: usize) -> Vec<u8> {
        let at = |row: usize, column: usize| codes[row * columns + column];
        let byte = |r: usize, column: usize| {
            (0..FIELDS).map(|field| at(r + field * quarter, column) << (2 * field)).sum()
        };
        (0..quarter * columns).map(|place| byte(place / columns, place % columns)).collect()
    }

    proptest! {
        #[test]
        fn rows_are_those_of_the_format(
            quarter in 1..5_usize,
            columns in 1..300_usize,
            seed in vec(0..3_u8, 1..500),
        ) {
            let rows = quarter * FIELDS;
            let codes: Vec<_> = seed.iter().copied().cycle().take(rows * columns).collect();
            let mut expected = vec![0; rows * row_bytes(columns)];
            for (codes, packed) in
                codes.chunks(columns).zip(expected.chunks_mut(row_bytes(columns)))
            {
                pack_row(codes, packed);
            }
            let bytes = defined(&codes, quarter, columns);
            let unpacked = unpack(&tensor([quarter, columns], bytes.clone()), rows, columns);
            prop_assert_eq!(unpacked, Ok(expected.clone().into()));
            let matrix = TernaryMatrix::new(rows, columns, expected, Scales::Tensor(1.0)).unwrap();
            prop_assert_eq!(pack("w", &matrix), Ok(bytes));
        }
    }

    #[test]
    fn a_code_that_is_not_ternary_is_found() {
        let (quarter, columns) = (3, 130);
        for (row, column) in [(0, 0), (2, 129), (3, 5), (11, 128)] {
            let mut bytes = vec![0b10_00_01_10; quarter * columns];
            bytes[row % quarter * columns + column] |= 0b11 << (2 * (row / quarter));
            let found = unpack(&tensor([quarter, columns], bytes), 12, columns);
            let tensor = "w".to_owned();
            assert_eq!(found, Err(CheckpointError::NotTernary { tensor, row, column }));
        }
    }

    #[test]
    fn other_shapes_and_types_are_refused() {
        let bytes = |shape| tensor(shape, vec![0; 8]);
        let error = unpack(&bytes([2, 4]), 12, 4).unwrap_err();
        assert_eq!(error.to_string(), "tensor `w` has shape [2, 4], expected [3, 4]");
        let error = unpack(&bytes([2, 4]), 10, 4).unwrap_err();
        assert!(matches!(error, CheckpointError::PackedRows { rows: 10, .. }), "{error}");
        let mut floats = bytes([2, 4]);
        (floats.info.dtype, floats.data) = (Dtype::F32, TensorData::F32(vec![0.0; 8].into()));
        let error = unpack(&floats, 8, 4).unwrap_err();
        assert_eq!(error.to_string(), "tensor `w` has element type F32, expected U8");
        let mut signed = bytes([2, 4]);
        signed.info.dtype = Dtype::I8;
        let error = unpack(&signed, 8, 4).unwrap_err();
        assert!(matches!(error, CheckpointError::Dtype { found: Dtype::I8, .. }), "{error}");
        let matrix = TernaryMatrix::new(1, 1, vec![ZERO_WEIGHTS; 32], Scales::Tensor(1.0)).unwrap();
        assert!(pack("w", &matrix).is_err());
    }
}
