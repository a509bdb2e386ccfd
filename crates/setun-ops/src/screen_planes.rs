//! Planes of a screen's codes: five bits of a code in one, two in the other.
//!
//! The *coarse* code of a [code](crate::screen_dot) is `code >> 2`, the *fine* one `code & 3`. A
//! large table keeps them apart, so that a first pass reads the coarse ones of all rows and a
//! second the fine ones of those rows that are left.
//!
//! # Layout
//!
//! Coarse codes lie in blocks of 512 columns, which are five lines of 64 bytes. Unit `u` of a
//! block is its columns from `64 u` on; byte `i` of a line holds bits of the columns `64 u + i`:
//!
//! ```text
//! bit      7 6    5    4 3 2 1 0
//! line 0  5: 4 3  2    unit 0         5: 4 3 2 = bits 4, 3 and 2 of unit 5
//! line 1  6: 4 3  2    unit 1
//! line 2  7: 4 3  2    unit 2
//! line 3  5: 1 0  7: 1 unit 3
//! line 4  6: 1 0  7: 0 unit 4
//! ```
//!
//! So five units are unpacked by a mask, and the three others by a few shifts. Fine codes are
//! packed as the codes of [ternary](crate::ternary) weights are, of which 3 is one more.

use crate::ternary::{BLOCK_BYTES, BLOCK_COLUMNS, PLANE_COLUMNS};

/// Columns of a block; rows are padded to whole ones.
pub const PLANE_BLOCK: usize = 512;

/// Columns of a unit, and bytes of a line.
pub const UNIT: usize = 64;

/// Lines of a block of coarse codes.
pub const LINES: usize = 5;

/// Bytes of a block of coarse codes.
pub const COARSE_BYTES: usize = LINES * UNIT;

/// Bytes of a block of fine codes.
pub const FINE_BYTES: usize = PLANE_BLOCK / 4;

/// Whether screens have planes at all: on processors whose kernels were measured with them.
pub const ANY_PLANES: bool = cfg!(target_arch = "x86_64");

/// The two low bits of each of eight bytes.
const LOW_BITS: u64 = 0x0303_0303_0303_0303;

/// Elements from which on a table's screen has planes: a smaller one stays in a cache.
const MIN_ELEMENTS: usize = 4 << 20;

/// Whether the screen of a table has planes. Padding must not make them larger than bytes.
#[must_use]
pub fn has_planes(rows: usize, columns: usize) -> bool {
    let bytes = plane_columns(columns) / 8 * 7;
    ANY_PLANES && rows.saturating_mul(columns) >= MIN_ELEMENTS && bytes <= columns
}

/// Columns of a row with its padding.
#[must_use]
pub fn plane_columns(columns: usize) -> usize {
    columns.next_multiple_of(PLANE_BLOCK)
}

/// Packs a row.
///
/// # Shapes
///
/// - `codes`: `[columns]`, 0..=127, whole blocks.
/// - `coarse`: `[columns / 512 × 320]`.
/// - `fine`: `[columns / 4]`.
pub fn pack_planes(codes: &[u8], coarse: &mut [u8], fine: &mut [u8]) {
    let blocks = codes.as_chunks::<PLANE_BLOCK>().0;
    for (codes, lines) in blocks.iter().zip(coarse.as_chunks_mut::<COARSE_BYTES>().0) {
        for index in 0..UNIT {
            let unit = |unit: usize| codes[unit * UNIT + index] >> 2;
            let (five, six, seven) = (unit(5), unit(6), unit(7));
            lines[index] = unit(0) | five >> 2 << 5;
            lines[UNIT + index] = unit(1) | six >> 2 << 5;
            lines[2 * UNIT + index] = unit(2) | seven >> 2 << 5;
            lines[3 * UNIT + index] = unit(3) | (seven >> 1 & 1) << 5 | (five & 3) << 6;
            lines[4 * UNIT + index] = unit(4) | (seven & 1) << 5 | (six & 3) << 6;
        }
    }
    let blocks = codes.as_chunks::<BLOCK_COLUMNS>().0;
    for (codes, packed) in blocks.iter().zip(fine.as_chunks_mut::<BLOCK_BYTES>().0) {
        for (index, packed) in packed.iter_mut().enumerate() {
            let plane = |plane: usize| codes[plane * PLANE_COLUMNS + index] & 3;
            *packed = plane(0) | plane(1) << 2 | plane(2) << 4 | plane(3) << 6;
        }
    }
}

/// The coarse codes of a row, 0..=31; shapes as in [`pack_planes`].
#[inline(always)]
#[expect(clippy::inline_always, reason = "compiled for the caller's instruction set")]
pub fn coarse_codes(coarse: &[u8], codes: &mut [u8]) {
    let blocks = codes.as_chunks_mut::<PLANE_BLOCK>().0;
    for (lines, codes) in coarse.as_chunks::<COARSE_BYTES>().0.iter().zip(blocks) {
        unpack_coarse(lines, codes);
    }
}

/// The whole codes of a row; shapes as in [`pack_planes`].
#[inline(always)]
#[expect(clippy::inline_always, reason = "compiled for the caller's instruction set")]
pub fn whole_codes(coarse: &[u8], fine: &[u8], codes: &mut [u8]) {
    let blocks = codes.as_chunks_mut::<PLANE_BLOCK>().0;
    let fine = fine.as_chunks::<FINE_BYTES>().0;
    for ((lines, fine), codes) in coarse.as_chunks::<COARSE_BYTES>().0.iter().zip(fine).zip(blocks)
    {
        unpack_coarse(lines, codes);
        let blocks = codes.as_chunks_mut::<BLOCK_COLUMNS>().0;
        for (fine, codes) in fine.as_chunks::<BLOCK_BYTES>().0.iter().zip(blocks) {
            // In words, as compilers make no vectors of so few bytes. A coarse code stays in its byte.
            let fine = fine.as_chunks::<8>().0;
            for (plane, codes) in codes.as_chunks_mut::<PLANE_COLUMNS>().0.iter_mut().enumerate() {
                for (fine, codes) in fine.iter().zip(codes.as_chunks_mut::<8>().0) {
                    let fine = u64::from_le_bytes(*fine) >> (2 * plane) & LOW_BITS;
                    *codes = (u64::from_le_bytes(*codes) << 2 | fine).to_le_bytes();
                }
            }
        }
    }
}

/// Sums `coarse code × plane` over a packed row: `[columns / 512 × 320]` and `[columns]`.
#[must_use]
pub fn coarse_dot(coarse: &[u8], plane: &[i8]) -> i32 {
    let mut codes = [0; PLANE_BLOCK];
    let blocks = coarse.as_chunks::<COARSE_BYTES>().0.iter();
    let dot = |(lines, plane): (_, &[i8; PLANE_BLOCK])| {
        unpack_coarse(lines, &mut codes);
        codes.iter().zip(plane).map(|(&code, &x)| i32::from(code) * i32::from(x)).sum::<i32>()
    };
    blocks.zip(plane.as_chunks().0).map(dot).sum()
}

#[inline(always)]
#[expect(clippy::inline_always, reason = "compiled for the caller's instruction set")]
fn unpack_coarse(lines: &[u8; COARSE_BYTES], codes: &mut [u8; PLANE_BLOCK]) {
    for (line, code) in lines.iter().zip(&mut *codes) {
        *code = line & 0x1f;
    }
    for index in 0..UNIT {
        let line = |line: usize| lines[line * UNIT + index];
        codes[5 * UNIT + index] = line(0) >> 3 & 0x1c | line(3) >> 6;
        codes[6 * UNIT + index] = line(1) >> 3 & 0x1c | line(4) >> 6;
        codes[7 * UNIT + index] = line(2) >> 3 & 0x1c | line(3) >> 4 & 2 | line(4) >> 5 & 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_come_back_from_their_planes() {
        for columns in [PLANE_BLOCK, 5 * PLANE_BLOCK] {
            let codes: Vec<u8> = (0..columns)
                .map(|column| u8::try_from((column * 37 + column / 64 * 11) % 128).unwrap())
                .collect();
            let mut coarse = vec![0; columns / PLANE_BLOCK * COARSE_BYTES];
            let mut fine = vec![0; columns / PLANE_BLOCK * FINE_BYTES];
            pack_planes(&codes, &mut coarse, &mut fine);
            let mut found = vec![1; columns];
            whole_codes(&coarse, &fine, &mut found);
            assert_eq!(found, codes);
            coarse_codes(&coarse, &mut found);
            assert!(found.iter().zip(&codes).all(|(found, code)| *found == code >> 2));
        }
    }

    #[test]
    fn planes_are_for_large_tables_that_they_make_smaller() {
        assert_eq!(has_planes(128_256, 2560), ANY_PLANES);
        assert_eq!(has_planes(32_000, 1024), ANY_PLANES);
        assert!(!has_planes(4096, 1000), "it is small");
        assert!(!has_planes(100_000, 520), "padding would make it larger");
    }
}
