//! A draft model's cache, as a scheduler manages it.

use setun_model::{MemoryUse, Outputs, SequenceId};

use super::DraftModel;
use crate::error::Error;

impl DraftModel {
    /// Bytes that the model keeps in memory.
    pub(crate) fn memory(&self) -> MemoryUse {
        self.model.memory()
    }

    /// Whether its cache has memory that no sequence needs.
    pub(crate) fn has_spare(&self) -> bool {
        let held = self.pool.held_blocks() - self.pool.idle_blocks();
        self.pool.idle_blocks() > 0 || self.memory().cache > held * self.model.block_bytes()
    }

    /// Forgets the sequences that are not there any more.
    pub(crate) fn retain(&mut self, is_there: impl Fn(SequenceId) -> bool) {
        let Self { sequences, pool, .. } = self;
        sequences.retain(|&sequence, kept| {
            let stays = is_there(sequence);
            if !stays {
                pool.remove(kept.sequence);
            }
            stays
        });
    }

    /// Holds its cache to this many blocks. Where sequences have more, all begin again.
    pub(crate) async fn hold_to(&mut self, blocks: usize) -> Result<(), Error> {
        if self.pool.held_blocks() - self.pool.idle_blocks() > blocks {
            self.retain(|_| false);
        }
        let beyond = self.pool.held_blocks().saturating_sub(blocks);
        self.pool.forget_idle(self.pool.idle_blocks().saturating_sub(beyond));
        self.pool.set_max_blocks(blocks);
        if self.memory().cache <= blocks.saturating_mul(self.model.block_bytes()) {
            return Ok(());
        }
        self.shrink().await
    }

    /// Gives back the memory of blocks that no sequence has, and of steps.
    pub(crate) async fn shrink(&mut self) -> Result<(), Error> {
        self.pool.forget_idle(0);
        self.pool.compact();
        self.outputs = Outputs::default();
        Ok(self.model.shrink(&mut self.pool).await?)
    }
}
