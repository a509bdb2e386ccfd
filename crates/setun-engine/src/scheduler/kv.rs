//! The KV cache of a scheduler: its blocks, its limits, and the slots of running sequences.

use std::time::Duration;

use setun_model::{ModelError, PagedCache};

use super::{Running, release_memory::PolledMonitor};
use crate::error::Error;

/// What a scheduler is held to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Blocks of the cache; at least those of one context.
    pub(crate) blocks: usize,
    /// Blocks of one context.
    pub(crate) min_blocks: usize,
    /// Blocks that no sequence has, kept for prompts that begin as others did.
    pub(crate) prefix_blocks: usize,
    /// Sequences that run at once; at least 1.
    pub(crate) max_concurrent: usize,
    /// Time that an idle scheduler waits for more requests after the first.
    pub(crate) wait: Duration,
}

/// The paged cache, and how far it may grow.
pub(super) struct KvCache {
    pub(super) pool: PagedCache,
    pub(super) limits: Limits,
    pub(super) max_blocks: usize,      // that the limits had at first
    pub(super) grown_blocks: usize,    // with which a step has run
    pub(super) lacking: Option<usize>, // blocks for which to compact before the next step
    pub(super) monitor: Option<PolledMonitor>, // over the system's memory
}

impl KvCache {
    /// An empty cache. The blocks of the limits must hold one whole context.
    pub(super) fn new(limits: Limits, mut pool: PagedCache) -> Self {
        pool.keep_prefixes(limits.prefix_blocks);
        let max_blocks = limits.blocks;
        Self { pool, limits, max_blocks, grown_blocks: 0, lacking: None, monitor: None }
    }

    /// Empties it, for this many blocks from now on.
    pub(super) fn reset(&mut self, blocks: usize) {
        let mut pool = PagedCache::new(self.pool.block_positions(), blocks);
        pool.keep_states(self.pool.state_blocks());
        pool.keep_prefixes(self.limits.prefix_blocks);
        self.pool = pool;
    }

    /// Whether it was refused memory within its limits.
    pub(super) fn is_refused_more(&self) -> bool {
        self.pool.max_blocks() < self.limits.blocks
    }

    /// Whether the step that failed had to grow it.
    pub(super) fn was_to_grow(&self) -> bool {
        self.grown_blocks > 0 && self.pool.high_water() > self.grown_blocks
    }

    /// Blocks that a sequence is sure to take still: for its tokens and one more.
    pub(super) fn promised(&self, running: &Running) -> usize {
        let positions = running.sequence.pending().len() + 1;
        let needed = |kv_slot| self.pool.needed(kv_slot, positions).unwrap_or(0);
        let sum: usize = running.kv_slots().map(needed).sum();
        let unforked = running.sequence.count().saturating_sub(running.width());
        sum + unforked * (1 + self.pool.state_blocks())
    }

    /// Reserves this many positions for each row of a sequence, or for none: where
    /// [memory is lacking](PagedCache::lacks_memory), it says for how many blocks.
    pub(super) fn extend(
        &mut self,
        running: &Running,
        positions: usize,
    ) -> Result<Option<usize>, ModelError> {
        for (row, kv_slot) in running.kv_slots().enumerate() {
            let lacking = self.pool.lacks_memory(kv_slot, positions)?;
            let extended = match lacking {
                None => self.pool.extend(kv_slot, positions),
                Some(_) => Ok(()),
            };
            if lacking.is_some() || extended.is_err() {
                for kv_slot in running.kv_slots().take(row) {
                    self.pool.truncate(kv_slot, running.sequence.cached())?;
                }
                let needed = |kv_slot| self.pool.needed(kv_slot, positions).unwrap_or(0);
                return extended.map(|()| Some(running.kv_slots().map(needed).sum()));
            }
        }
        Ok(None)
    }

    /// Gives the rows of a search slots of their own, if all that they have in common is in the
    /// cache.
    pub(super) fn fork_rows(&mut self, running: &mut Running) {
        for _ in 0..running.sequence.forks() {
            // A slot that were not there would be refused in the next step.
            running.beam_rows.extend(self.pool.fork(running.kv_slot));
        }
    }

    /// Drops the positions of a sequence that it does not keep. Where it has a recurrent state, more may be
    /// dropped, which it computes again.
    pub(super) fn truncate(&mut self, running: &mut Running) -> Result<(), Error> {
        self.pool.truncate(running.kv_slot, running.sequence.cached())?;
        running.sequence.keep_cached(self.pool.len(running.kv_slot)?);
        Ok(())
    }

    /// Says which of the positions that a sequence has reserved are drafts.
    pub(super) fn mark_drafts(&mut self, running: &Running) {
        let drafts = running.draft.len().saturating_sub(1);
        // The next step refuses a slot that is not there.
        let _ = self.pool.mark_tentative(running.kv_slot, drafts);
    }

    /// Has other prompts find what a sequence has in the cache.
    pub(super) fn register_prefix(&mut self, running: &Running) {
        let Running { sequence, kv_slot, .. } = running;
        let tokens = &sequence.context()[..sequence.cached()];
        // A slot that were not there would be refused in the next step.
        let _ = self.pool.record_prefix(*kv_slot, tokens);
    }

    /// Frees all slots of a sequence.
    pub(super) fn release(&mut self, running: &Running) {
        for kv_slot in running.kv_slots() {
            self.pool.remove(kv_slot);
        }
    }
}
