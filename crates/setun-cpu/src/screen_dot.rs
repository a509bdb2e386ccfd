//! `screen_dot`: the integer loop of a screen, which each instruction set writes for itself.
//!
//! The definition is [`setun_ops::screen_dot`].

use crate::ternary_dot::TernaryDot;

/// Rows of a table in a tile.
pub(crate) const TILE_TOKENS: usize = 4;

/// Most hidden rows of a tile on any level.
pub(crate) const MOST_TILE_HIDDEN: usize = 3;

/// The sums of a tile's rows with each plane of a hidden row.
pub(crate) type Dots = [[i32; TILE_TOKENS]; 2];

/// The integer loop of an instruction set.
///
/// Shapes: `codes` four times `[columns]`, 0..=127; the planes of a hidden row twice `[columns]`;
/// `columns` a multiple of [`SCREEN_COLUMNS`](setun_ops::screen_dot::SCREEN_COLUMNS).
pub(crate) trait ScreenDot: TernaryDot {
    /// Hidden rows that [`screen_dots_wide`](Self::screen_dots_wide) takes together, at most
    /// [`MOST_TILE_HIDDEN`].
    const TILE_HIDDEN: usize = 1;

    /// `Σ code × plane` of four rows of codes with the two planes of a hidden row.
    /// Takes one row after the other: they lie so in memory, whose own prefetching follows.
    fn screen_dots(self, codes: [&[u8]; TILE_TOKENS], planes: [&[i8]; 2]) -> Dots;

    /// The same with up to [`TILE_HIDDEN`](Self::TILE_HIDDEN) hidden rows, which share the loads of
    /// codes, as rows of codes share those of planes. Asks memory for `ahead` meanwhile, which the
    /// streams of four rows at once keep a processor from finding by itself.
    ///
    /// By default one after the other, from the first-level cache: so in NEON, where four rows of
    /// codes share the loads of planes already, and in WebAssembly, which has few registers.
    fn screen_dots_wide(
        self,
        codes: [&[u8]; TILE_TOKENS],
        _ahead: &[u8],
        planes: &[[&[i8]; 2]],
        dots: &mut [Dots],
    ) {
        for (&planes, dots) in planes.iter().zip(dots) {
            *dots = self.screen_dots(codes, planes);
        }
    }
}
