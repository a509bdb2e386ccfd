//! Sequences that begin with what is in the cache.

use super::{CacheSalt, PagedCache, Sequence, prefixes::Parent};
use crate::{batch::SequenceId, error::ModelError};

impl PagedCache {
    /// A new sequence that begins with all that is here of `tokens` with this salt, in full blocks
    /// and less than all of them, so that one row at least is left to run. Its length says how much.
    /// What is [recorded](Self::record_prefix) of it is found with its salt alone.
    pub fn create_from(&mut self, salt: Option<&CacheSalt>, tokens: &[u32]) -> SequenceId {
        let mut blocks = self.prefixes.find(salt, usable(tokens), self.block_positions);
        let snapshot = self.until_snapshot(&mut blocks);
        for &block in &blocks {
            self.hold(block);
        }
        self.prefixes.touch(&blocks);
        let state = snapshot.map(|snapshot| self.begin_at(&blocks, snapshot)).unwrap_or_default();
        let (len, recorded) = (blocks.len() * self.block_positions, blocks.len());
        self.insert(Sequence { blocks, len, state, recorded, salt: salt.cloned() })
    }

    /// What [`create_from`](Self::create_from) would find of `tokens`: blocks, and how many of
    /// these no sequence has.
    #[must_use]
    pub fn found(&self, salt: Option<&CacheSalt>, tokens: &[u32]) -> (usize, usize) {
        let mut blocks = self.prefixes.find(salt, usable(tokens), self.block_positions);
        let state = self.until_snapshot(&mut blocks);
        let idle = blocks.iter().filter(|&&block| !self.is_shared(block)).count();
        let of_state = if state.is_some_and(|state| self.states.is_idle(state)) {
            self.state_blocks()
        } else {
            0
        };
        (blocks.len(), idle + of_state)
    }

    /// Records what the full blocks of a sequence hold, so that others of its salt find them by it.
    /// A block whose equal is recorded already gives way to that one. `tokens` are those of its
    /// positions; all of them have been computed, and no copy is pending.
    ///
    /// # Errors
    ///
    /// If the sequence is not here.
    pub fn record_prefix(
        &mut self,
        sequence: SequenceId,
        tokens: &[u32],
    ) -> Result<(), ModelError> {
        let Sequence { blocks, len, recorded, salt, .. } = self.get(sequence)?;
        let full = (*len).min(tokens.len()) / self.block_positions;
        if self.prefixes.max_idle == 0 || *recorded >= full {
            return Ok(());
        }
        let (mut blocks, recorded) = (blocks[..full].to_vec(), *recorded);
        let root = Parent::Root(salt.clone());
        for index in recorded..full {
            let before = index.checked_sub(1).map(|before| Parent::Block(blocks[before]));
            let parent = before.unwrap_or_else(|| root.clone());
            let range = index * self.block_positions..(index + 1) * self.block_positions;
            let block = blocks[index];
            match self.prefixes.insert(parent, &tokens[range], block) {
                None => self.references[block.0 as usize] += 1, // the index has it, too
                Some(known) if known == block => {}             // by a fork
                Some(known) => {
                    self.hold(known);
                    self.states.hand_over(block, known);
                    self.release(vec![block]);
                    blocks[index] = known;
                }
            }
        }
        self.prefixes.touch(&blocks);
        let owner = self.get_mut(sequence)?;
        owner.blocks[..full].copy_from_slice(&blocks);
        owner.recorded = full;
        Ok(())
    }

    /// Forgets blocks that no sequence has until at most this many are left.
    pub fn forget_idle(&mut self, most: usize) {
        while most == 0 && self.states.forget_oldest() {}
        while self.prefixes.idle > most {
            let Some(block) = self.prefixes.remove_oldest(&self.references) else { return };
            self.references[block.0 as usize] = 0;
            self.states.forget(block);
            self.free.push(block);
        }
        self.forget_memory();
    }

    /// Forgets the snapshot of a recurrent state that was not used for the longest time, if one is idle.
    pub fn forget_snapshot(&mut self) -> bool {
        self.states.forget_oldest()
    }

    /// Blocks that no sequence has, kept to be found by their tokens.
    #[must_use]
    pub fn idle_blocks(&self) -> usize {
        self.prefixes.idle
    }
}

/// The tokens before the last, which has to run.
fn usable(tokens: &[u32]) -> &[u32] {
    &tokens[..tokens.len().saturating_sub(1)]
}
