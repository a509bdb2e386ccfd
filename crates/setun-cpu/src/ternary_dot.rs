//! `ternary_dot`: the one operation that each instruction set writes for itself.
//!
//! The definition is [`setun_ops::ternary_dot()`]. A kernel sums `code × activation` with codes
//! 0..=2; the sum of the activations, taken once for each row when it is quantized, turns that
//! into the sum over weights −1..=1.

use fearless_simd::Simd;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "wasm32"))]
use setun_ops::ternary::{BLOCK_BYTES, BLOCK_COLUMNS};

use crate::{column_sums::ColumnSums, ternary_panel::TernaryPanel};

/// Rows of weights in a tile.
pub(crate) const TILE_OUTPUTS: usize = 4;

/// Rows of activations in a wide tile.
pub(crate) const TILE_ROWS: usize = 4;

/// Packed rows of weights of a tile.
pub(crate) type CodeRows<'a> = [&'a [u8]; TILE_OUTPUTS];

/// Sums of a tile with one row of activations.
pub(crate) type CodeDots = [i32; TILE_OUTPUTS];

/// Rows of activations of a wide tile.
pub(crate) type WideRows<'a> = [&'a [i8]; TILE_ROWS];

/// Sums of a wide tile, `[row of x][row of weights]`.
pub(crate) type WideDots = [CodeDots; TILE_ROWS];

/// The integer loop of an instruction set. The value is the proof that the processor has it.
pub(crate) trait TernaryDot: TernaryPanel {
    /// Token of the float operations.
    type Lanes: Simd;

    /// Token of the sums over columns.
    type Columns: ColumnSums;

    /// Token of the float operations.
    fn lanes(self) -> Self::Lanes;

    /// Token of the sums over columns.
    fn columns(self) -> Self::Columns;

    /// How many tiles ahead rows are requested.
    fn tiles_ahead(self) -> usize {
        1
    }

    /// `Σ code × activation` of four packed rows with one row of activations. Asks memory for the
    /// rows `ahead`, which come soon.
    ///
    /// Shapes: `weights` and `ahead` four times `[columns / 4]`, `x` `[columns]`, `columns` whole
    /// blocks.
    fn code_dots(self, weights: CodeRows<'_>, ahead: CodeRows<'_>, x: &[i8]) -> CodeDots;

    /// The same, of each run of columns apart: 32, 64 or 128 of them.
    ///
    /// Shapes: as above, `dots` at least `[columns / run]`.
    fn run_dots(
        self,
        weights: CodeRows<'_>,
        ahead: CodeRows<'_>,
        x: &[i8],
        run: usize,
        dots: &mut [CodeDots],
    );

    /// The same as `code_dots` with four rows of activations; the result is `[row of x][row of weights]`.
    fn code_dots_wide(
        self,
        weights: CodeRows<'_>,
        ahead: CodeRows<'_>,
        x: WideRows<'_>,
    ) -> WideDots {
        x.map(|x| self.code_dots(weights, ahead, x))
    }
}

/// Packed codes of a block. As an array it needs no check of bounds in an inner loop.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "wasm32"))]
pub(crate) type CodeBlock = [u8; BLOCK_BYTES];

/// Activations of a block.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "wasm32"))]
pub(crate) type ActivationBlock = [i8; BLOCK_COLUMNS];

/// The first `blocks` blocks of packed rows.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "wasm32"))]
#[inline(always)]
pub(crate) fn code_blocks<const ROWS: usize>(
    weights: [&[u8]; ROWS],
    blocks: usize,
) -> [&[CodeBlock]; ROWS] {
    weights.map(|row| &row.as_chunks().0[..blocks])
}

/// The first `blocks` blocks of rows of activations.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "wasm32"))]
#[inline(always)]
pub(crate) fn activation_blocks<const ROWS: usize>(
    x: [&[i8]; ROWS],
    blocks: usize,
) -> [&[ActivationBlock]; ROWS] {
    x.map(|x| &x.as_chunks().0[..blocks])
}
