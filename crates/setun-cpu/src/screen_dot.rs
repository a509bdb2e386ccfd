//! `screen_dot`: the integer loop of a screen, which each instruction set writes for itself.
//!
//! The definition is [`setun_ops::screen_dot`].

use crate::ternary_dot::TernaryDot;

/// Rows of a table in a tile.
pub(crate) const TILE_TOKENS: usize = 4;

/// The integer loop of an instruction set.
pub(crate) trait ScreenDot: TernaryDot {
    /// `Σ code × plane` of four rows of codes with the two planes of a hidden row.
    /// Takes one row after the other: they lie so in memory, whose own prefetching follows.
    ///
    /// Shapes: `codes` four times `[columns]`, 0..=127; `planes` twice `[columns]`; `columns` a
    /// multiple of [`SCREEN_COLUMNS`](setun_ops::screen_dot::SCREEN_COLUMNS).
    fn screen_dots(
        self,
        codes: [&[u8]; TILE_TOKENS],
        planes: [&[i8]; 2],
    ) -> [[i32; 2]; TILE_TOKENS];
}
