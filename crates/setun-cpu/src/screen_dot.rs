//! `screen_dot`: the integer loop of a screen, which each instruction set writes for itself.
//!
//! The definition is [`setun_ops::screen_dot`].

use setun_ops::screen_planes::coarse_dot;

use crate::ternary_dot::TernaryDot;

/// Rows of a table in a tile.
pub(crate) const TILE_TOKENS: usize = 4;

/// Most hidden rows of a tile on any level.
pub(crate) const MAX_TILE_HIDDEN: usize = 3;

/// The sums of a tile's rows with each plane of a hidden row.
pub(crate) type Dots = [[i32; TILE_TOKENS]; 2];

/// The integer loop of an instruction set.
pub(crate) trait ScreenDot: TernaryDot {
    /// Most hidden rows of a tile, at most [`MAX_TILE_HIDDEN`].
    const TILE_HIDDEN: usize = 1;

    /// `Σ code × plane` of four rows of codes with the two planes of some hidden rows, which
    /// share the loads of codes where registers allow, as rows of codes share those of planes.
    /// Asks memory for the rows `ahead`, where the instruction set can; rows that are here already
    /// do no harm.
    ///
    /// Shapes: `codes`, 0..=127, and `ahead` four times `[columns]`; the planes of each hidden row
    /// twice `[columns]`; `columns` a multiple of
    /// [`SCREEN_COLUMNS`](setun_ops::screen_dot::SCREEN_COLUMNS).
    fn screen_dots(
        self,
        codes: [&[u8]; TILE_TOKENS],
        ahead: [&[u8]; TILE_TOKENS],
        planes: &[[&[i8]; 2]],
        dots: &mut [Dots],
    );

    /// The same of four rows of coarse codes, packed as in [`setun_ops::screen_planes`], with one
    /// hidden row. A level that screens keep no planes for has no need of its own.
    fn coarse_dots(
        self,
        coarse: [&[u8]; TILE_TOKENS],
        _ahead: [&[u8]; TILE_TOKENS],
        planes: [&[i8]; 2],
    ) -> Dots {
        planes.map(|plane| coarse.map(|row| coarse_dot(row, plane)))
    }

    /// Asks memory for what comes next, where the instruction set can.
    fn request(self, _ahead: &[u8]) {}
}
