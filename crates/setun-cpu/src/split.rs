//! Disjoint parts of one buffer, for the members of a team to write at once.
//!
//! A [`Grid`] cuts a row-major matrix into tiles. [`Claims`] hands out each part of a grid, or
//! of several grids cut alike, exactly once, to whoever asks first. So no two members ever hold
//! the same part, whatever they do, and a member that comes late finds less to do.

#![expect(
    unsafe_code,
    reason = "tiles of a matrix are not slices, so the compiler cannot tell them apart"
)]

use std::{
    marker::PhantomData,
    ops::Range,
    slice,
    sync::atomic::{AtomicUsize, Ordering},
};

/// Something that falls into parts that do not overlap.
///
/// # Safety
///
/// Parts of different indices must not share memory that either can write.
pub(crate) unsafe trait Parts: Sync {
    /// One part. It borrows what the whole has borrowed, not the whole.
    type Part;

    /// Number of parts.
    fn count(&self) -> usize;

    /// The part of an index below [`count`](Self::count).
    ///
    /// # Safety
    ///
    /// No index may be requested twice.
    unsafe fn part(&self, index: usize) -> Self::Part;
}

/// Hands out parts, each once.
pub(crate) struct Claims<P> {
    parts: P,
    next: AtomicUsize,
}

impl<P: Parts> Claims<P> {
    pub(crate) fn new(parts: P) -> Self {
        Self { parts, next: AtomicUsize::new(0) }
    }

    /// The next part and its index, until there is none.
    pub(crate) fn next(&self) -> Option<(usize, P::Part)> {
        let index = self.next.fetch_add(1, Ordering::Relaxed);
        if index >= self.parts.count() {
            return None;
        }
        // SAFETY: the counter only grows, so no thread was or will be given this index. It cannot
        // wrap around: each member of a team asks once in vain.
        Some((index, unsafe { self.parts.part(index) }))
    }
}

/// A window of a row-major matrix, cut into tiles. It owns the borrow of the window's elements.
pub(crate) struct Grid<'a, T> {
    start: *mut T,
    rows: usize,
    stride: usize,
    columns: Range<usize>,
    tile_rows: usize,
    tile_columns: usize,
    borrow: PhantomData<&'a mut [T]>,
}

// SAFETY: a grid is a `&mut [T]` in pieces; pieces go to other threads as `&mut [T]` would.
unsafe impl<T: Send> Send for Grid<'_, T> {}
// SAFETY: a shared grid gives access to elements only through `part`, whose contract keeps
// parts apart.
unsafe impl<T: Send> Sync for Grid<'_, T> {}

impl<'a, T> Grid<'a, T> {
    /// All of `data` as rows of `stride`, one tile.
    pub(crate) fn new(data: &'a mut [T], stride: usize) -> Self {
        let rows = data.len().checked_div(stride).unwrap_or(0);
        Self {
            start: data.as_mut_ptr(),
            rows,
            stride,
            columns: 0..stride,
            tile_rows: rows.max(1),
            tile_columns: stride.max(1),
            borrow: PhantomData,
        }
    }

    /// Keeps some of the columns.
    pub(crate) fn columns(mut self, columns: Range<usize>) -> Self {
        assert!(columns.start <= columns.end && columns.end <= self.columns.len(), "a window");
        let first = self.columns.start;
        self.columns = first + columns.start..first + columns.end;
        self
    }

    /// Two windows: the columns before `at` and those from it on.
    pub(crate) fn split_at(self, at: usize) -> (Self, Self) {
        let width = self.columns.len();
        let left = Self { columns: self.columns.clone(), ..self };
        (left.columns(0..at), self.columns(at..width))
    }

    /// Cuts the window into tiles of this many rows and columns; the last may be smaller.
    pub(crate) fn tiles(mut self, rows: usize, columns: usize) -> Self {
        assert!(rows > 0 && columns > 0, "a tile has elements");
        (self.tile_rows, self.tile_columns) = (rows, columns);
        self
    }

    fn tiles_across(&self) -> usize {
        self.columns.len().div_ceil(self.tile_columns)
    }
}

// SAFETY: tiles of different indices differ in their rows or columns.
unsafe impl<'a, T: Send> Parts for Grid<'a, T> {
    type Part = Tile<'a, T>;

    fn count(&self) -> usize {
        self.rows.div_ceil(self.tile_rows) * self.tiles_across()
    }

    unsafe fn part(&self, index: usize) -> Tile<'a, T> {
        assert!(index < self.count(), "a tile of the grid");
        let across = self.tiles_across();
        let first_row = index / across * self.tile_rows;
        let first_column = index % across * self.tile_columns;
        Tile {
            start: self.start,
            stride: self.stride,
            offset: first_row * self.stride + self.columns.start + first_column,
            first_row,
            first_column,
            rows: self.tile_rows.min(self.rows - first_row),
            columns: self.tile_columns.min(self.columns.len() - first_column),
            borrow: PhantomData,
        }
    }
}

/// One tile of a [`Grid`]: the only access to its elements.
pub(crate) struct Tile<'a, T> {
    start: *mut T,
    stride: usize,
    offset: usize,
    first_row: usize,
    first_column: usize,
    rows: usize,
    columns: usize,
    borrow: PhantomData<&'a mut [T]>,
}

impl<T> Tile<'_, T> {
    /// The tile's rows in the matrix.
    pub(crate) fn rows(&self) -> Range<usize> {
        self.first_row..self.first_row + self.rows
    }

    /// The tile's columns in the grid's window.
    pub(crate) fn columns(&self) -> Range<usize> {
        self.first_column..self.first_column + self.columns
    }

    /// The tile's part of a row, counted from the tile's first.
    pub(crate) fn row(&mut self, row: usize) -> &mut [T] {
        assert!(row < self.rows, "row {row} of a tile of {}", self.rows);
        // SAFETY: the grid has checked that its window lies in the borrowed slice, and this
        // tile in the window; no other tile has these elements, and `self` is borrowed.
        unsafe {
            let first = self.start.add(self.offset + row * self.stride);
            slice::from_raw_parts_mut(first, self.columns)
        }
    }

    /// Copies the tile's part of a row to that of another.
    pub(crate) fn copy_row(&mut self, from: usize, to: usize)
    where
        T: Copy,
    {
        if from == to {
            return;
        }
        let source: *const T = self.row(from).as_ptr();
        let columns = self.columns;
        let target = self.row(to);
        // SAFETY: both are whole rows of this tile, which is borrowed, and different ones, so they
        // do not overlap.
        unsafe { std::ptr::copy_nonoverlapping(source, target.as_mut_ptr(), columns) }
    }
}

macro_rules! parts_of_tuples {
    ($($name:ident $index:tt),+) => {
        // SAFETY: each element keeps its own parts apart.
        unsafe impl<$($name: Parts),+> Parts for ($($name,)+) {
            type Part = ($($name::Part,)+);

            fn count(&self) -> usize {
                [$(self.$index.count()),+].into_iter().min().unwrap_or(0)
            }

            unsafe fn part(&self, index: usize) -> Self::Part {
                // SAFETY: the caller requests each index once, and so do we.
                ($(unsafe { self.$index.part(index) },)+)
            }
        }
    };
}

parts_of_tuples!(A 0, B 1);
parts_of_tuples!(A 0, B 1, C 2);
parts_of_tuples!(A 0, B 1, C 2, D 3);
parts_of_tuples!(A 0, B 1, C 2, D 3, E 4);

/// Parts of one of three kinds.
pub(crate) enum OneOf<A, B, C> {
    A(A),
    B(B),
    C(C),
}

// SAFETY: each kind keeps its own parts apart.
unsafe impl<A: Parts, B: Parts, C: Parts> Parts for OneOf<A, B, C> {
    type Part = OneOf<A::Part, B::Part, C::Part>;

    fn count(&self) -> usize {
        match self {
            Self::A(parts) => parts.count(),
            Self::B(parts) => parts.count(),
            Self::C(parts) => parts.count(),
        }
    }

    unsafe fn part(&self, index: usize) -> Self::Part {
        match self {
            // SAFETY: the caller requests each index once, and so do we.
            Self::A(parts) => OneOf::A(unsafe { parts.part(index) }),
            // SAFETY: as above.
            Self::B(parts) => OneOf::B(unsafe { parts.part(index) }),
            // SAFETY: as above.
            Self::C(parts) => OneOf::C(unsafe { parts.part(index) }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_cover_the_window_once() {
        for (tile_rows, tile_columns) in [(1, 1), (2, 3), (3, 2), (9, 9)] {
            let mut data = vec![0; 5 * 8];
            let grid = Grid::new(&mut data, 8).columns(1..7).tiles(tile_rows, tile_columns);
            let claims = Claims::new(grid);
            std::thread::scope(|scope| {
                for _ in 0..3 {
                    scope.spawn(|| {
                        while let Some((_, mut tile)) = claims.next() {
                            for row in 0..tile.rows().len() {
                                tile.row(row).iter_mut().for_each(|element| *element += 1);
                            }
                        }
                    });
                }
            });
            for (index, &element) in data.iter().enumerate() {
                assert_eq!(element, i32::from((1..7).contains(&(index % 8))), "element {index}");
            }
        }
    }

    #[test]
    fn windows_do_not_overlap() {
        let mut data: Vec<usize> = (0..12).collect();
        let (left, right) = Grid::new(&mut data, 4).split_at(3);
        let claims = Claims::new((left.tiles(1, 3), right.tiles(1, 1)));
        let mut seen = vec![];
        while let Some((index, (mut left, mut right))) = claims.next() {
            assert_eq!((left.rows(), right.columns()), (index..index + 1, 0..1));
            seen.extend_from_slice(left.row(0));
            seen.extend_from_slice(right.row(0));
        }
        assert_eq!(seen, (0..12).collect::<Vec<_>>());
    }

    #[test]
    fn nothing_falls_into_no_parts() {
        assert!(Claims::new(Grid::<u8>::new(&mut [], 0).tiles(1, 1)).next().is_none());
        assert!(Claims::new(Grid::<u8>::new(&mut [], 4).tiles(1, 2)).next().is_none());
    }
}
