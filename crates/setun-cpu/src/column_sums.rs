//! `column_sums`: the integer loop over columns, which each instruction set writes for itself.
//!
//! The definition is [`setun_ops::column_sums`]. A kernel may keep the sums in an order of its
//! own, and shifted left; [`ColumnSums::place`] says where the sum of an output is.

use setun_ops::ternary::BLOCK_COLUMNS;

/// Columns that a kernel takes at once.
pub(crate) const TILE_COLUMNS: usize = 8;

/// Packed codes of the columns that a kernel takes at once.
pub(crate) type Columns<'a> = [&'a [u8]; TILE_COLUMNS];

/// Their activations.
pub(crate) type Inputs = [i8; TILE_COLUMNS];

/// Outputs that sums are padded to.
pub(crate) const TILE_SUMS: usize = 2 * BLOCK_COLUMNS;

/// Sums over columns of an instruction set.
pub(crate) trait ColumnSums: Copy + Send + Sync {
    /// `sums += Σ code × activation` over eight columns, in the order of this instruction set.
    /// Asks memory for the columns `ahead`, which come next.
    ///
    /// Shapes: `columns` and `ahead` eight times the packed codes of whole tiles of [`TILE_SUMS`]
    /// outputs, `sums` for as many.
    fn add_columns(self, columns: Columns<'_>, ahead: Columns<'_>, x: Inputs, sums: &mut [i32]);

    /// Index of an output's sum, and by how many bits it is shifted left.
    fn place(self, output: usize) -> (usize, u32);

    /// Requests a column that will be needed soon.
    fn prefetch(self, column: &[u8]);
}
