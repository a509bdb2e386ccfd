//! Rows of a batch that need not be of one length.

/// `[B, N, width]` where each row of the batch has its own `N`; of token ids the width is 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Ragged<T> {
    width: usize,
    values: Vec<T>,
    ends: Vec<usize>, // of each row in `values`, a multiple of the width
}

impl<T: Copy> Ragged<T> {
    /// Rows of single values, such as token ids.
    pub fn from_rows<R: AsRef<[T]>>(rows: impl IntoIterator<Item = R>) -> Self {
        let mut ragged = Self::new(1);
        rows.into_iter().for_each(|row| ragged.push(row.as_ref()));
        ragged
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

    /// The padded form, `[B, N, width]` with the longest row's `N`: shorter rows are filled up behind.
    #[must_use]
    pub fn padded(&self, fill: T) -> Vec<T> {
        let longest = self.iter().map(<[T]>::len).max().unwrap_or(0);
        let mut values = Vec::with_capacity(self.rows() * longest);
        for row in self.iter() {
            values.extend_from_slice(row);
            values.extend(std::iter::repeat_n(fill, longest - row.len()));
        }
        values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_comes_after_rows_that_are_shorter() {
        let rows: [&[u32]; 3] = [&[1, 2], &[], &[3, 4, 5]];
        let ragged = Ragged::from_rows(rows);
        assert_eq!((ragged.rows(), ragged.lengths()), (3, vec![2, 0, 3]));
        assert_eq!(ragged.padded(9), [1, 2, 9, 9, 9, 9, 3, 4, 5]);
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
}
