//! `ternary_panel`: the integer loop of a step with many rows, which each instruction set writes
//! for itself.
//!
//! The sums are those of [`ternary_dot`](crate::ternary_dot), but codes are unpacked once for
//! all rows, into a panel of 64 outputs where the codes of four columns lie side by side for each
//! of them (eight, where an instruction takes as many). Four activations, splatted, meet a vector
//! of outputs, so that no lanes are ever added up. A panel is made again whenever it is needed: the
//! packed weights are the only copy.

use setun_ops::ternary::{BLOCK_BYTES, BLOCK_COLUMNS, PLANE_COLUMNS};

use crate::quantized::RowRun;

/// Most rows that pass a panel at once: their sums stay in the second-level cache.
pub(crate) const MAX_ROWS: usize = 256;

/// Outputs of a panel.
pub(crate) const PANEL_OUTPUTS: usize = 64;

/// Rows of packed weights that are unpacked at once.
pub(crate) const UNPACKED_ROWS: usize = 16;

/// Quads of a block of columns.
pub(crate) const BLOCK_QUADS: usize = BLOCK_COLUMNS / 4;

/// Most blocks of columns of a panel, whatever the instruction set: 16 KiB, which stay in the
/// first-level cache while all rows pass.
pub(crate) const MAX_BLOCKS: usize = 2;

/// Most runs of columns of a panel.
pub(crate) const MAX_RUNS: usize = MAX_BLOCKS * BLOCK_COLUMNS / PLANE_COLUMNS;

/// Most rows of activations that any instruction set takes at once.
pub(crate) const MAX_TILE_ROWS: usize = 8;

/// Fewest rows for which any instruction set makes panels.
pub(crate) const FEWEST_PANEL_ROWS: usize = 3;

/// Codes of four neighbouring columns, `[PANEL_OUTPUTS][4]`.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct Quad(pub(crate) [u8; 4 * PANEL_OUTPUTS]);

/// Activations of four neighbouring columns.
pub(crate) type Four = [i8; 4];

/// Sums over codes of the outputs of a panel for one row.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct PanelSums(pub(crate) [i32; PANEL_OUTPUTS]);

/// The scale and the sum of each run of a panel, for one row.
pub(crate) type RowRuns = [RowRun; MAX_RUNS];

/// A float of each output of a panel.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct PanelOutputs(pub(crate) [f32; PANEL_OUTPUTS]);

/// Sums by panels of an instruction set.
pub(crate) trait TernaryPanel: Copy + Send + Sync + 'static {
    /// Fewest rows of a step for which a panel pays with this many columns, at least
    /// [`FEWEST_PANEL_ROWS`]; never, where there is no kernel. Tiles add up lanes for each output and row:
    /// the fewer columns, the more that counts.
    fn fewest_rows(_columns: usize) -> usize {
        usize::MAX
    }

    /// Blocks of columns of a panel, at most [`MAX_BLOCKS`].
    const BLOCKS: usize = 1;

    /// Most rows of activations at once, at most [`MAX_TILE_ROWS`].
    const ROWS: usize = 4;

    /// Neighbouring columns whose codes lie side by side: four, or two quads share their memory.
    #[cfg(any(test, feature = "testing"))]
    const COLUMNS: usize = 4;

    /// Unpacks some outputs of a panel, from `first` on, from their packed rows.
    ///
    /// Shapes: `rows` sixteen times `[blocks × BLOCK_BYTES]`, `panel` `[blocks × BLOCK_QUADS]`.
    fn unpack_rows(self, rows: [&[u8]; UNPACKED_ROWS], first: usize, panel: &mut [Quad]) {
        for (index, row) in rows.into_iter().enumerate() {
            let place = 4 * (first + index);
            let (fours, _) = row.as_chunks();
            let blocks = fours.chunks_exact(BLOCK_BYTES / 4);
            for (fours, panel) in blocks.zip(panel.chunks_exact_mut(BLOCK_QUADS)) {
                for (at, &four) in fours.iter().enumerate() {
                    for (plane, codes) in planes(u32::from_le_bytes(four)).into_iter().enumerate() {
                        let quad = &mut panel[plane * (PLANE_COLUMNS / 4) + at];
                        quad.0[place..place + 4].copy_from_slice(&codes.to_le_bytes());
                    }
                }
            }
        }
    }

    /// `sums += Σ code × activation` of a panel with some rows, at most [`ROWS`](Self::ROWS).
    ///
    /// Shapes: `panel` `[quads]`, `x` `[rows][quads]`, `sums` `[rows]`.
    fn add_rows(self, panel: &[Quad], x: &[&[Four]], sums: &mut [PanelSums]) {
        for (x, sums) in x.iter().zip(sums) {
            for (quad, x) in panel.iter().zip(*x) {
                for (codes, sum) in quad.0.as_chunks::<4>().0.iter().zip(&mut sums.0) {
                    let products = codes.iter().zip(x).map(|(&c, &x)| i32::from(c) * i32::from(x));
                    *sum += products.sum::<i32>();
                }
            }
        }
    }

    /// `y += (Σ code × activation − sum) × (t × w)`, added for each run of columns of a panel in
    /// ascending order. `runs` has `sum` and `t` of each row, `w` the weight scales of each run. There
    /// are at most [`ROWS`](Self::ROWS) rows.
    ///
    /// Shapes: `panel` `[runs × quads]`, `x` `[rows][runs × quads]`, `runs` and `y` `[rows]`.
    fn add_scaled_rows(
        self,
        panel: &[Quad],
        x: &[&[Four]],
        runs: &[RowRuns],
        w: &[PanelOutputs],
        y: &mut [PanelOutputs],
    ) {
        let quads = panel.len() / w.len().max(1);
        for (index, (panel, w)) in panel.chunks_exact(quads.max(1)).zip(w).enumerate() {
            let mut memory = [PanelSums::default(); MAX_TILE_ROWS];
            let sums = &mut memory[..x.len()];
            let mut of_run: [&[Four]; MAX_TILE_ROWS] = [&[]; MAX_TILE_ROWS];
            for (of_run, x) in of_run.iter_mut().zip(x) {
                *of_run = &x[index * quads..][..quads];
            }
            self.add_rows(panel, &of_run[..x.len()], sums);
            for ((sums, runs), y) in sums.iter().zip(runs).zip(&mut *y) {
                let RowRun { t, sum: of_row } = runs[index];
                for ((sum, w), y) in sums.0.iter().zip(&w.0).zip(&mut y.0) {
                    *y += to_f32(sum - of_row) * (t * w);
                }
            }
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "|sum| < 2^24 within MAX_COLUMNS")]
pub(crate) fn to_f32(sum: i32) -> f32 {
    sum as f32
}

/// The first `quads` quads of rows of activations: an inner loop of as many needs no check of bounds.
///
/// Not by `map`, whose closure would be called, with its result in memory.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn as_long<const ROWS: usize>(mut x: [&[Four]; ROWS], quads: usize) -> [&[Four]; ROWS] {
    for row in &mut x {
        *row = &row[..quads];
    }
    x
}

/// The part at `index` of rows of activations that are cut into parts of `quads` quads.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn part_of<const ROWS: usize>(
    mut x: [&[Four]; ROWS],
    index: usize,
    quads: usize,
) -> [&[Four]; ROWS] {
    for row in &mut x {
        *row = &row[index * quads..][..quads];
    }
    x
}

/// The planes of four bytes of packed codes.
#[inline(always)]
fn planes(packed: u32) -> [u32; 4] {
    [0, 2, 4, 6].map(|shift| packed >> shift & 0x0303_0303)
}

impl Default for Quad {
    fn default() -> Self {
        Self([0; 4 * PANEL_OUTPUTS])
    }
}

impl PanelOutputs {
    /// Values by the output's index in the panel.
    pub(crate) fn of(value: impl Fn(usize) -> f32) -> Self {
        Self(std::array::from_fn(value))
    }
}

impl Default for PanelOutputs {
    fn default() -> Self {
        Self([0.0; PANEL_OUTPUTS])
    }
}

impl Default for PanelSums {
    fn default() -> Self {
        Self([0; PANEL_OUTPUTS])
    }
}
