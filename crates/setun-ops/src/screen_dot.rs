//! `screen_dot`: the integer sum of the screen before a head.
//!
//! A row of a table is screened as 7-bit integers `−63..=63`, stored 64 higher as *codes*
//! 1..=127; a hidden row as 16-bit integers in two int8 *planes*, `256 × high + low`. The sum of
//! a row and a plane is exact: `dot = Σ code[i] × plane[i]`. It is no operation of a plan but
//! part of how [`top_logits`](crate::top_logits) is found, and each instruction set writes it for itself.

use crate::{
    op::Agreement,
    screen_planes::{has_planes, plane_columns},
};

/// See [`Agreement`].
pub const AGREEMENT: Agreement = Agreement::Exact;

/// The code of the integer 0.
pub const ZERO_CODE: u8 = 64;

/// The largest magnitude of a table's integer.
pub const MAX_TABLE: i8 = 63;

/// Columns are padded to a multiple of this.
pub const SCREEN_COLUMNS: usize = 32;

/// Bytes of a table's screen: its codes, and a scale and the bounds of each row, in `f32`.
#[must_use]
pub fn screen_bytes(rows: usize, columns: usize) -> usize {
    let bounds = if has_planes(rows, columns) { 4 } else { 3 };
    rows * (row_bytes(rows, columns) + bounds * size_of::<f32>())
}

/// Bytes of a row's codes.
#[must_use]
pub fn row_bytes(rows: usize, columns: usize) -> usize {
    if has_planes(rows, columns) {
        plane_columns(columns) / 8 * 7
    } else {
        columns.next_multiple_of(SCREEN_COLUMNS)
    }
}

/// Sums `code × plane`.
///
/// It cannot overflow within [`MAX_COLUMNS`](crate::ternary::MAX_COLUMNS): `127 × 128 × 132,096`
/// stays below 2^31.
///
/// # Shapes
///
/// - `codes`: `[columns]`, 0..=127.
/// - `plane`: `[columns]`, any int8.
///
/// # Panics
///
/// If the lengths differ.
#[must_use]
pub fn screen_dot(codes: &[u8], plane: &[i8]) -> i32 {
    assert_eq!(codes.len(), plane.len(), "one value of the plane for each code");
    codes.iter().zip(plane).map(|(&code, &x)| i32::from(code) * i32::from(x)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ternary::MAX_COLUMNS;

    #[test]
    fn extremes_do_not_overflow() {
        let codes = vec![127; MAX_COLUMNS];
        let dot = screen_dot(&codes, &vec![-128; MAX_COLUMNS]);
        assert_eq!(i64::from(dot), -128 * 127 * i64::try_from(MAX_COLUMNS).unwrap());
    }
}
