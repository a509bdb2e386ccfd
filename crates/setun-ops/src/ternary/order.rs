//! Rows and columns of a matrix in another order.

use super::{
    BLOCK_BYTES, BLOCK_COLUMNS, PLANE_COLUMNS, Scales, TernaryMatrix, code_at, pack_row, row_bytes,
};
use crate::{
    aligned::{Aligned, NoMemory},
    error::OpsError,
};

impl TernaryMatrix {
    /// The same rows in another order: row `i` is row `order[i]` of this one.
    ///
    /// # Errors
    ///
    /// If the order has another number of rows, or names one that is not there.
    ///
    /// Also if there is no memory.
    pub fn in_order(&self, order: &[usize]) -> Result<Self, OpsError> {
        let most = order.iter().copied().max().map_or(0, |most| most + 1);
        if order.len() != self.rows || most > self.rows {
            let (what, found) = ("rows of a matrix in order", order.len().max(most));
            return Err(OpsError::Length { what, expected: self.rows, found });
        }
        let bytes = row_bytes(self.columns);
        let what = "a matrix in order";
        let no_memory = |NoMemory { bytes }| OpsError::OutOfMemory { what, bytes };
        let mut codes = Aligned::default();
        codes.reserve(self.codes.len()).map_err(no_memory)?;
        for row in order {
            codes.extend_from_slice(&self.codes[row * bytes..][..bytes]).map_err(no_memory)?;
        }
        let scales = match &self.scales {
            Scales::Tensor(scale) => Scales::Tensor(*scale),
            Scales::Rows(values) => Scales::Rows(order.iter().map(|&row| values[row]).collect()),
            Scales::ColumnGroups { columns, values } => {
                let groups = values.len() / self.rows.max(1);
                let of_row = |&row: &usize| values[row * groups..][..groups].iter().copied();
                Scales::ColumnGroups {
                    columns: *columns,
                    values: order.iter().flat_map(of_row).collect(),
                }
            }
        };
        Self::new(self.rows, self.columns, codes, scales)
    }

    /// The same columns in another order: block `i` of `width` columns is block `order[i]` of this one. Scales of
    /// groups that blocks cut become those of narrower groups, and of wider ones again where neighbours are equal.
    ///
    /// # Errors
    ///
    /// If the blocks are not all columns, or their width is no multiple of 32.
    ///
    /// Also if there is no memory.
    pub fn with_column_blocks(&self, order: &[usize], width: usize) -> Result<Self, OpsError> {
        let found = order.len().saturating_mul(width);
        let most = order.iter().copied().max().map_or(0, |most| most + 1);
        let is_whole = width.is_multiple_of(PLANE_COLUMNS) && most <= order.len();
        if found != self.columns || !is_whole {
            let what = "columns of a matrix in blocks of multiples of 32";
            return Err(OpsError::Length { what, expected: self.columns, found });
        }
        let bytes = row_bytes(self.columns);
        let what = "a matrix in order";
        let no_memory = |NoMemory { bytes }| OpsError::OutOfMemory { what, bytes };
        let mut codes = Aligned::filled(0, self.codes.len()).map_err(no_memory)?;
        let rows = codes.chunks_exact_mut(bytes).zip(self.codes.chunks_exact(bytes));
        let mut wide = vec![0; self.columns];
        for (out, row) in rows {
            if width.is_multiple_of(BLOCK_COLUMNS) {
                let block = width / BLOCK_COLUMNS * BLOCK_BYTES;
                for (out, from) in out.chunks_exact_mut(block).zip(order) {
                    out.copy_from_slice(&row[from * block..][..block]);
                }
                continue;
            }
            for (out, from) in wide.chunks_exact_mut(width).zip(order) {
                for (out, column) in out.iter_mut().zip(from * width..) {
                    *out = code_at(row, column);
                }
            }
            pack_row(&wide, out);
        }
        Self::new(self.rows, self.columns, codes, self.scales_in_blocks(order, width))
    }

    fn scales_in_blocks(&self, order: &[usize], width: usize) -> Scales {
        let Scales::ColumnGroups { columns, values } = &self.scales else {
            return self.scales.clone();
        };
        // The widest groups that neither the old ones nor blocks end within.
        let narrow = common_divisor(*columns, width);
        let groups = self.columns.div_ceil(*columns);
        let column = |index: usize| {
            let column = index * narrow;
            order[column / width] * width + column % width
        };
        let of_row = |row: &[f32]| -> Vec<f32> {
            (0..self.columns / narrow).map(|index| row[column(index) / columns]).collect()
        };
        let moved: Vec<f32> = values.chunks_exact(groups).flat_map(of_row).collect();
        widened(moved, narrow, *columns, self.columns)
    }
}

/// Groups of `wide` columns where all the narrow ones within are equal.
fn widened(values: Vec<f32>, narrow: usize, wide: usize, columns: usize) -> Scales {
    let (within, in_row) = (wide / narrow, columns / narrow);
    let is_equal =
        |row: &[f32]| row.chunks(within).all(|group| group.iter().all(|x| *x == group[0]));
    if within > 1 && values.chunks_exact(in_row).all(is_equal) {
        let of_row = |row: &[f32]| row.chunks(within).map(|group| group[0]).collect::<Vec<_>>();
        let values = values.chunks_exact(in_row).flat_map(of_row).collect();
        return Scales::ColumnGroups { columns: wide, values };
    }
    Scales::ColumnGroups { columns: narrow, values }
}

fn common_divisor(a: usize, b: usize) -> usize {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(columns: usize, group: usize) -> TernaryMatrix {
        let codes = |row: usize| {
            (0..columns).map(move |c| u8::try_from((c * 7 + row * 5 + c / 9) % 3).unwrap())
        };
        let mut packed = vec![0; 3 * row_bytes(columns)];
        for (row, out) in packed.chunks_exact_mut(row_bytes(columns)).enumerate() {
            pack_row(&codes(row).collect::<Vec<_>>(), out);
        }
        let groups = columns.div_ceil(group);
        let values = (0u8..).take(3 * groups).map(|x| f32::from(x) + 0.5).collect();
        let scales = Scales::ColumnGroups { columns: group, values };
        TernaryMatrix::new(3, columns, packed, scales).unwrap()
    }

    fn weight(matrix: &TernaryMatrix, row: usize, column: usize) -> f32 {
        let Scales::ColumnGroups { columns, values } = matrix.scales() else { panic!("groups") };
        let groups = matrix.columns().div_ceil(*columns);
        let bytes = row_bytes(matrix.columns());
        let code = code_at(&matrix.codes()[row * bytes..][..bytes], column);
        (f32::from(code) - 1.0) * values[row * groups + column / columns]
    }

    #[test]
    fn columns_and_their_scales_move_together() {
        for (width, group) in [(128, 128), (64, 128), (64, 64), (128, 64), (96, 128), (32, 96)] {
            let order = [3, 0, 2, 1, 5, 4];
            let before = matrix(6 * width, group);
            let after = before.with_column_blocks(&order, width).unwrap();
            for row in 0..3 {
                for column in 0..6 * width {
                    let from = order[column / width] * width + column % width;
                    assert_eq!(weight(&after, row, column), weight(&before, row, from));
                }
            }
            assert!(before.with_column_blocks(&order[..5], width).is_err());
        }
        assert!(matrix(60, 32).with_column_blocks(&[1, 0], 30).is_err());
    }

    #[test]
    fn rows_and_their_scales_move_together() {
        let before = matrix(128, 64);
        let after = before.in_order(&[2, 0, 1]).unwrap();
        for (row, from) in [2, 0, 1].into_iter().enumerate() {
            for column in 0..128 {
                assert_eq!(weight(&after, row, column), weight(&before, from, column));
            }
        }
        assert!(before.in_order(&[0, 1]).is_err() && before.in_order(&[0, 1, 3]).is_err());
    }
}
