//! Packed ternary weights.
//!
//! A `BitNet` b1.58 weight is one of −1, 0, +1 times a scale shared by many weights. What is
//! stored is the *code* `weight + 1`, which is 0, 1 or 2, in two bits.
//!
//! # Layout
//!
//! A row is a run of 32-byte blocks; each block holds 128 codes in four *planes*. Byte `i` of a
//! block holds the codes of columns `i`, `i + 32`, `i + 64` and `i + 96`, lowest bits first, so
//! that one shift and one mask unpack 32 neighbouring columns:
//!
//! ```text
//! bit   7 6   5 4   3 2   1 0
//!      c+96  c+64  c+32   c        c = column of the block's byte
//! ```
//!
//! Rows are padded with code 1 (weight 0) to a whole block. The layout is the same on every
//! target; no file format depends on the machine that packed it.

mod order;
mod packing;

pub use packing::{
    BLOCK_BYTES, BLOCK_COLUMNS, PLANE_COLUMNS, ZERO_WEIGHTS, code_at, first_three, pack_row,
    padded_columns, row_bytes, threes,
};

use crate::{
    aligned::{Aligned, NoMemory},
    error::OpsError,
};

/// Widest matrix that is accepted: below it `|dot| < 2^24`, so that its conversion to `f32` is
/// exact (127 × 132,000 = 16,764,000).
pub const MAX_COLUMNS: usize = 132_000;

/// Factors that turn codes into weights. All are finite.
#[derive(Clone, Debug, PartialEq)]
pub enum Scales {
    /// One for the whole matrix.
    Tensor(f32),
    /// One for each row, `[rows]`.
    Rows(Vec<f32>),
    /// One for each row and each run of `columns` columns (a multiple of 32).
    ColumnGroups {
        /// Columns that share a scale; the last group may be shorter.
        columns: usize,
        /// `[rows, columns_of_matrix.div_ceil(columns)]`
        values: Vec<f32>,
    },
}

impl Scales {
    /// Checks them against the shape of their matrix.
    ///
    /// # Errors
    ///
    /// If there are more or fewer, or one is not finite.
    pub fn check(&self, rows: usize, columns: usize) -> Result<(), OpsError> {
        let (expected, values) = match self {
            Self::Tensor(scale) => (1, std::slice::from_ref(scale)),
            Self::Rows(values) => (rows, values.as_slice()),
            Self::ColumnGroups { columns: group, values } => {
                if *group == 0 || group % PLANE_COLUMNS != 0 {
                    return Err(OpsError::GroupColumns { found: *group });
                }
                (rows.saturating_mul(columns.div_ceil(*group)), values.as_slice())
            }
        };
        if values.len() != expected {
            return Err(OpsError::Length { what: "scales", expected, found: values.len() });
        }
        match values.iter().position(|scale| !scale.is_finite()) {
            Some(index) => Err(OpsError::NotFinite { what: "scale", index, found: values[index] }),
            None => Ok(()),
        }
    }
}

/// A ternary matrix `[rows, columns]` in the packed layout of the [module](self).
#[derive(Clone, Debug, PartialEq)]
pub struct TernaryMatrix {
    rows: usize,
    columns: usize,
    codes: Aligned<u8>, // [rows, blocks, BLOCK_BYTES]
    scales: Scales,
}

impl TernaryMatrix {
    /// Wraps codes that are packed already.
    ///
    /// # Errors
    ///
    /// If a size does not fit, `columns` exceeds [`MAX_COLUMNS`], a code is 3, a padding code
    /// is not 1, or a scale is not finite.
    pub fn new(
        rows: usize,
        columns: usize,
        codes: impl Into<Aligned<u8>>,
        scales: Scales,
    ) -> Result<Self, OpsError> {
        let matrix = Self::trusted(rows, columns, codes.into(), scales)?;
        matrix.check_codes()?;
        Ok(matrix)
    }

    /// As [`new`](Self::new), of codes that were checked when they were written. A code of 3 would
    /// change results, and nothing else.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new), but for codes and padding.
    pub fn trusted(
        rows: usize,
        columns: usize,
        codes: Aligned<u8>,
        scales: Scales,
    ) -> Result<Self, OpsError> {
        if columns == 0 || columns > MAX_COLUMNS {
            return Err(OpsError::Columns { found: columns, limit: MAX_COLUMNS });
        }
        let expected = rows.saturating_mul(row_bytes(columns));
        if codes.len() != expected {
            return Err(OpsError::Length { what: "packed codes", expected, found: codes.len() });
        }
        scales.check(rows, columns)?;
        Ok(Self { rows, columns, codes, scales })
    }

    /// Stacks matrices of one width and scale kind on top of each other, so that one product
    /// serves for all. Tensor scales become row scales, which gives the same bits.
    ///
    /// # Errors
    ///
    /// If `parts` is empty, or widths or column groups differ.
    pub fn stack(parts: Vec<Self>) -> Result<Self, OpsError> {
        let bytes = parts.iter().skip(1).map(|part| part.codes.len()).sum();
        let mut parts = parts.into_iter();
        let mut first = parts.next().ok_or(OpsError::Length {
            what: "matrices to stack",
            expected: 1,
            found: 0,
        })?;
        let what = "a stacked matrix";
        let no_memory = |_| OpsError::OutOfMemory { what, bytes };
        first.codes.reserve(bytes).map_err(no_memory)?;
        parts.try_fold(first, Self::stack_two)
    }

    fn stack_two(mut self, other: Self) -> Result<Self, OpsError> {
        if self.columns != other.columns {
            return Err(OpsError::Length {
                what: "columns of a stacked matrix",
                expected: self.columns,
                found: other.columns,
            });
        }
        let (upper, lower) = (self.rows, other.rows);
        self.scales = match (self.scales, other.scales) {
            (
                Scales::ColumnGroups { columns, mut values },
                Scales::ColumnGroups { columns: found, values: more },
            ) if columns == found => {
                values.extend(more);
                Scales::ColumnGroups { columns, values }
            }
            (Scales::ColumnGroups { .. }, _) | (_, Scales::ColumnGroups { .. }) => {
                return Err(OpsError::MixedScales);
            }
            (a, b) => {
                let mut values = per_row(a, upper);
                values.extend(per_row(b, lower));
                Scales::Rows(values)
            }
        };
        let no_memory =
            |NoMemory { bytes }| OpsError::OutOfMemory { what: "a stacked matrix", bytes };
        self.codes.extend_from_slice(&other.codes).map_err(no_memory)?;
        self.rows += lower;
        Ok(self)
    }

    /// Output rows.
    #[must_use]
    #[inline]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Columns, without padding.
    #[must_use]
    #[inline]
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// The scales.
    #[must_use]
    #[inline]
    pub fn scales(&self) -> &Scales {
        &self.scales
    }

    /// All packed codes, `[rows, row_bytes]`.
    #[must_use]
    pub fn codes(&self) -> &[u8] {
        &self.codes
    }

    /// Moves the codes into large pages, see [`aligned`](crate::aligned).
    pub fn settle(&self) {
        self.codes.settle();
    }

    /// Packed codes of one row.
    ///
    /// # Panics
    ///
    /// If `row` is out of range.
    #[must_use]
    #[inline]
    pub fn row(&self, row: usize) -> &[u8] {
        let bytes = row_bytes(self.columns);
        &self.codes[row * bytes..][..bytes]
    }

    /// The weight −1, 0 or +1 at a place.
    ///
    /// # Panics
    ///
    /// If the place is out of range.
    #[must_use]
    pub fn weight(&self, row: usize, column: usize) -> i8 {
        assert!(column < self.columns, "column {column} of {}", self.columns);
        code_at(self.row(row), column).cast_signed() - 1
    }

    /// The scale of the weight at a place.
    ///
    /// # Panics
    ///
    /// If the place is out of range.
    #[must_use]
    pub fn scale(&self, row: usize, column: usize) -> f32 {
        match &self.scales {
            Scales::Tensor(scale) => *scale,
            Scales::Rows(scales) => scales[row],
            Scales::ColumnGroups { columns, values } => {
                values[row * self.columns.div_ceil(*columns) + column / columns]
            }
        }
    }

    /// Bytes of codes and scales.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let scales = match &self.scales {
            Scales::Tensor(_) => 1,
            Scales::Rows(values) | Scales::ColumnGroups { values, .. } => values.len(),
        };
        self.codes.len() + scales * size_of::<f32>()
    }

    fn check_codes(&self) -> Result<(), OpsError> {
        let full = self.columns / BLOCK_COLUMNS * BLOCK_BYTES;
        for (row, bytes) in self.codes.chunks_exact(row_bytes(self.columns)).enumerate() {
            if let Some(byte) = first_three(bytes) {
                return Err(OpsError::Code { row, byte });
            }
            let padding = self.columns..(bytes.len() * 4);
            if full < bytes.len() && padding.into_iter().any(|c| code_at(bytes, c) != 1) {
                return Err(OpsError::Padding { row });
            }
        }
        Ok(())
    }
}

fn per_row(scales: Scales, rows: usize) -> Vec<f32> {
    match scales {
        Scales::Tensor(scale) => vec![scale; rows],
        Scales::Rows(scales) => scales,
        Scales::ColumnGroups { values, .. } => values,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::{collection::vec, prelude::*};

    proptest! {
        #[test]
        fn packing_keeps_every_code(codes in vec(0..=2u8, 1..400)) {
            let mut packed = vec![0xff; row_bytes(codes.len())];
            pack_row(&codes, &mut packed);
            let matrix = TernaryMatrix::new(1, codes.len(), packed, Scales::Tensor(1.0)).unwrap();
            for (column, &code) in codes.iter().enumerate() {
                prop_assert_eq!(matrix.weight(0, column), code.cast_signed() - 1);
            }
        }
    }

    #[test]
    fn what_is_not_ternary_is_refused() {
        let packed = |byte| vec![byte; BLOCK_BYTES];
        let new = |columns, codes, scale| {
            TernaryMatrix::new(1, columns, codes, Scales::Tensor(scale)).unwrap_err()
        };
        assert!(matches!(new(128, packed(0b11), 1.0), OpsError::Code { row: 0, byte: 0 }));
        assert!(matches!(new(127, packed(0), 1.0), OpsError::Padding { row: 0 }));
        assert!(matches!(new(129, packed(0), 1.0), OpsError::Length { .. }));
        assert!(matches!(new(0, vec![], 1.0), OpsError::Columns { .. }));
        assert!(matches!(new(128, packed(ZERO_WEIGHTS), f32::NAN), OpsError::NotFinite { .. }));
    }

    #[test]
    fn stacking_keeps_rows_and_scales() {
        let matrix = |code: u8, scale| {
            let mut packed = vec![0; row_bytes(5)];
            pack_row(&[code; 5], &mut packed);
            TernaryMatrix::new(1, 5, packed, Scales::Tensor(scale)).unwrap()
        };
        let stacked = TernaryMatrix::stack(vec![matrix(0, 0.5), matrix(2, 0.25)]).unwrap();
        assert_eq!((stacked.rows(), stacked.columns()), (2, 5));
        assert_eq!((stacked.weight(0, 4), stacked.weight(1, 4)), (-1, 1));
        assert_eq!(stacked.scales(), &Scales::Rows(vec![0.5, 0.25]));
    }
}
