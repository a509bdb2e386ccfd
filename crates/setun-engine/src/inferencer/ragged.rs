//! Rows of a batch that need not be of one length.

use crate::error::Error;

/// `[B, N, width]` where each row of the batch has its own `N`; of token ids the width is 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Ragged<T> {
    width: usize,
    values: Vec<T>,
    ends: Vec<usize>, // of each row in `values`, a multiple of the width
}

/// Where rows that are shorter than others are filled up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Padding {
    /// Before what they have.
    Left,
    /// After it.
    #[default]
    Right,
}

impl<T: Copy> Ragged<T> {
    /// Rows of single values, such as token ids.
    pub fn from_rows<R: AsRef<[T]>>(rows: impl IntoIterator<Item = R>) -> Self {
        let mut ragged = Self::new(1);
        rows.into_iter().for_each(|row| ragged.push(row.as_ref()));
        ragged
    }

    /// Rows of single values from the padded form `[B, N]`, with the length of each row.
    ///
    /// # Errors
    ///
    /// If the values are not this many rows of one length, or a row is longer than that.
    pub fn from_padded(values: &[T], lengths: &[usize], padding: Padding) -> Result<Self, Error> {
        let columns = values.len().checked_div(lengths.len()).unwrap_or(0);
        let expected = columns * lengths.len();
        if values.len() != expected {
            let (what, found) = ("values of a padded batch", values.len());
            return Err(Error::BatchShape { what, expected, found });
        }
        if let Some(&found) = lengths.iter().find(|&&length| length > columns) {
            let what = "the length of a row of a padded batch";
            return Err(Error::BatchShape { what, expected: columns, found });
        }
        let rows = lengths.iter().enumerate().map(|(row, &length)| {
            let row = &values[row * columns..(row + 1) * columns];
            match padding {
                Padding::Left => &row[columns - length..],
                Padding::Right => &row[..length],
            }
        });
        Ok(Self::from_rows(rows))
    }

    /// No rows of items of this many values.
    pub(crate) fn new(width: usize) -> Self {
        Self { width, values: vec![], ends: vec![] }
    }

    /// Appends a row of whole items.
    pub(crate) fn push(&mut self, row: &[T]) {
        self.values.extend_from_slice(row);
        self.ends.push(self.values.len());
    }

    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.ends.len()
    }

    /// Values of an item: 1 for token ids, the vocabulary's size for logits.
    #[must_use]
    pub fn width(&self) -> usize {
        self.width
    }

    /// A row, `[N, width]`; empty where there is none of this number.
    #[must_use]
    pub fn row(&self, row: usize) -> &[T] {
        let start = row.checked_sub(1).and_then(|before| self.ends.get(before)).copied();
        let end = self.ends.get(row).copied().unwrap_or(0);
        self.values.get(start.unwrap_or(0)..end).unwrap_or_default()
    }

    /// The rows, each `[N, width]`.
    pub fn iter(&self) -> impl Iterator<Item = &[T]> {
        (0..self.rows()).map(|row| self.row(row))
    }

    /// One item of a row, `[width]`.
    #[must_use]
    pub fn item(&self, row: usize, index: usize) -> Option<&[T]> {
        let start = index.checked_mul(self.width)?;
        self.row(row).get(start..start.checked_add(self.width)?)
    }

    /// Items of each row.
    #[must_use]
    pub fn lengths(&self) -> Vec<usize> {
        self.iter().map(|row| row.len() / self.width.max(1)).collect()
    }

    /// All values in one piece, row after row without padding.
    #[must_use]
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// The padded form, `[B, N, width]` with the longest row's `N`.
    #[must_use]
    pub fn padded(&self, fill: T, padding: Padding) -> Vec<T> {
        let longest = self.iter().map(<[T]>::len).max().unwrap_or(0);
        let mut values = Vec::with_capacity(self.rows() * longest);
        for row in self.iter() {
            let missing = longest - row.len();
            let (before, after) = match padding {
                Padding::Left => (missing, 0),
                Padding::Right => (0, missing),
            };
            values.extend(std::iter::repeat_n(fill, before));
            values.extend_from_slice(row);
            values.extend(std::iter::repeat_n(fill, after));
        }
        values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_on_either_side_comes_off_again() {
        let rows: [&[u32]; 3] = [&[1, 2], &[], &[3, 4, 5]];
        let ragged = Ragged::from_rows(rows);
        assert_eq!((ragged.rows(), ragged.lengths()), (3, vec![2, 0, 3]));
        let left = ragged.padded(9, Padding::Left);
        assert_eq!(left, [9, 1, 2, 9, 9, 9, 3, 4, 5]);
        let right = ragged.padded(9, Padding::Right);
        assert_eq!(right, [1, 2, 9, 9, 9, 9, 3, 4, 5]);
        for (padded, padding) in [(left, Padding::Left), (right, Padding::Right)] {
            let again = Ragged::from_padded(&padded, &[2, 0, 3], padding).expect("a batch");
            assert_eq!(again, ragged);
        }
    }

    #[test]
    fn items_are_found_by_row_and_place() {
        let mut ragged = Ragged::new(2);
        ragged.push(&[1, 2, 3, 4]);
        ragged.push(&[5, 6]);
        assert_eq!(ragged.lengths(), [2, 1]);
        assert_eq!(ragged.item(0, 1), Some(&[3, 4][..]));
        assert_eq!(ragged.item(1, 0), Some(&[5, 6][..]));
        assert_eq!((ragged.item(1, 1), ragged.item(2, 0)), (None, None));
        assert!(ragged.row(2).is_empty());
    }

    #[test]
    fn a_batch_that_is_none_is_refused() {
        let padded = |values: &[u32], lengths| Ragged::from_padded(values, lengths, Padding::Left);
        let expected = "values of a padded batch: expected 4, found 5";
        assert_eq!(padded(&[0; 5], &[1, 1]).expect_err("odd").to_string(), expected);
        let expected = "the length of a row of a padded batch: expected 2, found 3";
        assert_eq!(padded(&[0; 4], &[2, 3]).expect_err("long").to_string(), expected);
        assert_eq!(padded(&[], &[]).expect("no rows").rows(), 0);
    }
}
