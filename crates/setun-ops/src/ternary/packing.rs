//! The packed layout of a row: see the [module](super) above.

/// Columns in one packed block.
pub const BLOCK_COLUMNS: usize = 128;

/// Bytes in one packed block: 128 codes of two bits.
pub const BLOCK_BYTES: usize = BLOCK_COLUMNS / 4;

/// Columns in one plane of a block, the unit that a SIMD kernel loads at once.
pub const PLANE_COLUMNS: usize = BLOCK_COLUMNS / 4;

/// A byte of four codes 1, that is of four zero weights: what padding is made of.
pub const ZERO_WEIGHTS: u8 = 0b01_01_01_01;

/// Bytes of a packed row of `columns` codes.
#[must_use]
#[inline]
pub const fn row_bytes(columns: usize) -> usize {
    columns.div_ceil(BLOCK_COLUMNS) * BLOCK_BYTES
}

/// `columns`, rounded up to whole blocks: the length of a quantized activation row.
#[must_use]
#[inline]
pub const fn padded_columns(columns: usize) -> usize {
    columns.div_ceil(BLOCK_COLUMNS) * BLOCK_COLUMNS
}

/// The code of one column in a packed row.
///
/// # Panics
///
/// If `column` lies beyond the row's blocks.
#[must_use]
pub fn code_at(row: &[u8], column: usize) -> u8 {
    let (block, within) = (column / BLOCK_COLUMNS, column % BLOCK_COLUMNS);
    let byte = row[block * BLOCK_BYTES + within % PLANE_COLUMNS];
    byte >> (2 * (within / PLANE_COLUMNS)) & 0b11
}

/// The lower bit of each code of a byte that is 3, as no code may be.
#[must_use]
pub const fn threes(byte: u8) -> u8 {
    byte & byte >> 1 & ZERO_WEIGHTS
}

/// The first byte that has a code 3.
#[must_use]
pub fn first_three(bytes: &[u8]) -> Option<usize> {
    const WORD: usize = size_of::<u64>();
    const LOW_BITS: u64 = u64::from_ne_bytes([ZERO_WEIGHTS; WORD]);
    let (words, rest) = bytes.as_chunks::<WORD>();
    // Without an early end the scan runs in vectors, and in words where there are none.
    let seen = words.iter().fold(0, |seen, word| {
        let word = u64::from_ne_bytes(*word);
        seen | word & word >> 1 & LOW_BITS
    });
    if seen == 0 && rest.iter().all(|&byte| threes(byte) == 0) {
        return None;
    }
    bytes.iter().position(|&byte| threes(byte) != 0)
}

/// Packs one row of codes 0..=2 into `packed`, and pads it.
///
/// # Panics
///
/// If `packed` is not [`row_bytes`] long, or (in debug builds) a code exceeds 2.
pub fn pack_row(codes: &[u8], packed: &mut [u8]) {
    assert_eq!(packed.len(), row_bytes(codes.len()), "packed row of {} codes", codes.len());
    packed.fill(0);
    let padding = codes.len()..packed.len() * 4;
    let codes = codes.iter().copied().enumerate().chain(padding.map(|column| (column, 1)));
    for (column, code) in codes {
        debug_assert!(code <= 2, "code {code} at column {column}");
        let (block, within) = (column / BLOCK_COLUMNS, column % BLOCK_COLUMNS);
        packed[block * BLOCK_BYTES + within % PLANE_COLUMNS] |=
            code << (2 * (within / PLANE_COLUMNS));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_of_3_is_found_wherever_it_is() {
        for len in [0_usize, 1, 7, 8, 9, 32, 61] {
            let clean: Vec<u8> =
                (0..len).map(|index| [0b10_01_00_10, 0b01_10_10_01][index % 2]).collect();
            assert_eq!(first_three(&clean), None);
            for place in 0..len * 4 {
                let mut bytes = clean.clone();
                bytes[place / 4] |= 0b11 << (2 * (place % 4));
                assert_eq!(first_three(&bytes), Some(place / 4));
                assert_eq!(threes(bytes[place / 4]), 1 << (2 * (place % 4)));
            }
        }
    }

    #[test]
    fn a_block_has_four_planes() {
        let mut codes = vec![1; BLOCK_COLUMNS];
        (codes[0], codes[32], codes[64], codes[96]) = (2, 0, 1, 2);
        let mut packed = vec![0; BLOCK_BYTES];
        pack_row(&codes, &mut packed);
        assert_eq!(packed[0], 0b10_01_00_10);
        assert_eq!(packed[1], ZERO_WEIGHTS);
    }
}
