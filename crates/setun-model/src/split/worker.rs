//! A stage at work: pieces come in order, and leave in the same.

use setun_ops::{BlockId, StateId};

use super::{any::AnyStage, microbatch::Microbatch};
use crate::error::ModelError;

/// A stage, and what it owes.
pub(super) struct Worker {
    stage: AnyStage,
    first_layer: usize,
    /// Copies that the cache's bookkeeping counts as made.
    owed: Vec<(BlockId, BlockId)>,
    owed_states: Vec<(StateId, StateId)>,
    /// The last step that failed here: its later pieces are not run.
    failed: Option<u64>,
    profiled: bool,
}

impl Worker {
    pub(super) fn new(stage: AnyStage) -> Self {
        let first_layer = stage.0.part().first;
        Self {
            stage,
            first_layer,
            owed: vec![],
            owed_states: vec![],
            failed: None,
            profiled: false,
        }
    }

    /// Notes copies, which are made before the next piece that is run.
    pub(super) fn owe(&mut self, copies: &[(BlockId, BlockId)], states: &[(StateId, StateId)]) {
        self.owed.extend_from_slice(copies);
        self.owed_states.extend_from_slice(states);
    }

    /// Runs a piece, unless it has failed or one before it of its step has failed here.
    pub(super) async fn work(&mut self, piece: &mut Microbatch) {
        if !piece.failed && self.failed != Some(piece.number) {
            piece.error = self.run(piece).await.err();
            if piece.error.is_some() {
                self.failed = Some(piece.number);
            }
        }
        piece.failed |= self.failed == Some(piece.number);
        piece.memory.add(&self.stage.0.memory());
    }

    async fn run(&mut self, piece: &mut Microbatch) -> Result<(), ModelError> {
        if piece.profiled != self.profiled {
            self.stage.0.set_profiled(piece.profiled);
            self.profiled = piece.profiled;
        }
        if piece.shrinks {
            self.stage.0.shrink(piece.blocks, &self.owed)?;
            self.stage.0.copy_states(&self.owed_states)?;
            self.stage.0.shrink_states(piece.states)?;
            self.owed.clear();
            self.owed_states.clear();
            return Ok(());
        }
        if piece.head_rows.is_empty() {
            // Blocks beyond those in use were in use before the cache was last empty.
            let is_there = |block: BlockId| (block.0 as usize) < piece.blocks;
            self.owed.retain(|&(from, to)| is_there(from) && is_there(to));
            self.stage.0.grow_and_copy((piece.blocks, piece.max_blocks), &self.owed)?;
            self.owed.clear();
            self.stage.0.grow_states(piece.states)?;
            self.stage.0.copy_states(&self.owed_states)?;
            self.owed_states.clear();
        } else if !self.stage.0.part().has_head() {
            return Ok(());
        }
        self.stage.0.work(piece).await?;
        if let Some(profile) = self.stage.0.profile() {
            piece.profile.add_from(profile, self.first_layer);
        }
        Ok(())
    }
}
