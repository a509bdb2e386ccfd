//! KV cache of an inferencer, a row for each of a batch.

use std::sync::{Arc, Mutex};

use setun_model::SequenceId;

use crate::{error::Error, sync::lock};

/// Rows of a batch that are in the memory of an [`Inferencer`](crate::Inferencer): the tokens that
/// were run, whose keys and values are kept, and the random numbers that each row draws.
///
/// It belongs to the inferencer that made it; another one refuses it. A call that fails, or
/// whose future is dropped, leaves it as it was. What it no longer needs is free when the
/// inferencer is called next.
#[derive(Debug)]
pub struct InferencerCache {
    pub(crate) rows: Vec<CacheRow>,
    pub(crate) released: Arc<Released>,
}

/// Sequences whose caches were dropped. Each inferencer has its own, which identifies its caches.
#[derive(Debug, Default)]
pub(crate) struct Released(Mutex<Vec<SequenceId>>);

impl Released {
    pub(crate) fn take(&self) -> Vec<SequenceId> {
        std::mem::take(&mut *lock(&self.0))
    }
}

/// One row.
#[derive(Clone, Debug)]
pub(crate) struct CacheRow {
    pub(crate) sequence: SequenceId,
    /// All that were run, and only those.
    pub(crate) tokens: Vec<u32>,
    /// How many of them are the prompt.
    pub(crate) prompt_tokens: usize,
    pub(crate) seed: u64,
    pub(crate) draws: u64,
}

impl InferencerCache {
    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows.len()
    }

    /// Positions of each row: as many as tokens were run.
    #[must_use]
    pub fn lengths(&self) -> Vec<usize> {
        self.rows.iter().map(|row| row.tokens.len()).collect()
    }

    /// The tokens of a row that were run; none where there is no such row.
    #[must_use]
    pub fn tokens(&self, row: usize) -> &[u32] {
        self.rows.get(row).map(|row| row.tokens.as_slice()).unwrap_or_default()
    }

    /// Drops the positions from `len` on, in every row. Shorter rows stay as they are.
    pub fn truncate(&mut self, len: usize) {
        self.rows.iter_mut().for_each(|row| row.truncate(len));
    }

    /// Which random numbers a row draws: those of an engine's generation with this seed, of which
    /// it is the sequence `draws`. A new cache has draws 0, 1, 2, … for its rows.
    ///
    /// # Errors
    ///
    /// If there is no such row.
    pub fn set_draws(&mut self, row: usize, seed: u64, draws: u64) -> Result<(), Error> {
        let what = "a row of a cache, from 0 and below the number of rows";
        let shape = Error::BatchShape { what, expected: self.rows.len(), found: row };
        let row = self.rows.get_mut(row).ok_or(shape)?;
        (row.seed, row.draws) = (seed, draws);
        Ok(())
    }
}

impl CacheRow {
    /// An empty one.
    pub(crate) fn new(sequence: SequenceId) -> Self {
        Self { sequence, tokens: vec![], prompt_tokens: 0, seed: 0, draws: 0 }
    }

    fn truncate(&mut self, len: usize) {
        if len < self.tokens.len() {
            self.tokens.truncate(len);
            self.prompt_tokens = self.prompt_tokens.min(len);
        }
    }
}

impl Drop for InferencerCache {
    fn drop(&mut self) {
        lock(&self.released.0).extend(self.rows.iter().map(|row| row.sequence));
    }
}
