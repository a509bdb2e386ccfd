//! Memory of a member of the team for products by groups of columns.

use setun_ops::OpsError;

use crate::{
    quantized::RowRun,
    ternary_dot::{CodeDots, TILE_OUTPUTS},
};

/// Scratch memory of a product by groups of columns, with an entry for each run of columns.
#[derive(Debug, Default)]
pub(crate) struct GroupScratch {
    /// The activation scale of each run, once for each output of a tile.
    pub(crate) t: Vec<[f32; TILE_OUTPUTS]>,
    /// The sum of the activations of each run, once for each output of a tile.
    pub(crate) sums: Vec<CodeDots>,
    /// The sums over codes of each run, one for each output of a tile.
    pub(crate) dots: Vec<CodeDots>,
}

impl GroupScratch {
    /// Makes room for rows of this many runs.
    pub(crate) fn reserve(&mut self, runs: usize) -> Result<(), OpsError> {
        let runs = runs.next_multiple_of(4);
        let no_memory = |_| OpsError::OutOfMemory { what: "scratch memory", bytes: 48 * runs };
        self.t.clear();
        self.t.try_reserve_exact(runs).map_err(no_memory)?;
        self.sums.clear();
        self.sums.try_reserve_exact(runs).map_err(no_memory)?;
        self.dots.clear();
        self.dots.try_reserve_exact(runs).map_err(no_memory)
    }

    /// Sets the number of runs. `prepare` has reserved the memory.
    pub(crate) fn take(&mut self, runs: usize) {
        self.t.resize(runs, Default::default());
        self.sums.resize(runs, CodeDots::default());
        self.dots.resize(runs, CodeDots::default());
    }

    /// Sets the scales and sums of activations to those of a row. Entries after its last run are zero.
    pub(crate) fn enter(&mut self, runs: impl Iterator<Item = RowRun>) {
        let runs = runs.chain(std::iter::repeat(RowRun::default()));
        for ((t, sum), run) in self.t.iter_mut().zip(&mut *self.sums).zip(runs) {
            (*t, *sum) = ([run.t; TILE_OUTPUTS], [run.sum; TILE_OUTPUTS]);
        }
    }
}
