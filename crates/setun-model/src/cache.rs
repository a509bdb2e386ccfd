//! Ownership of the blocks of the paged KV cache.
//!
//! A sequence is a list of blocks and a length. Blocks are counted by reference, so that a
//! fork shares them; a shared block is copied when one of its owners is about to write to it.
//! Full blocks whose tokens are recorded are found again by these tokens (`prefixes`), for as long
//! as their memory is not needed; those of a [`CacheSalt`] are found with it alone. This is
//! bookkeeping only: the memory belongs to a backend, which makes the copies.

mod compact;
mod memory;
mod prefixes;
mod reuse;
mod snapshots;
mod state_steps;
mod states;

use std::collections::BTreeMap;

use setun_ops::BlockId;

use crate::{batch::SequenceId, error::ModelError};
pub use prefixes::CacheSalt;
use prefixes::Prefixes;
use states::{SequenceState, States};

/// Block tables and reference counts. See the [module](self). One belongs to one model: the
/// blocks of two would be the same memory.
#[derive(Clone, Debug)]
pub struct PagedCache {
    block_positions: usize,
    max_blocks: usize,
    references: Vec<u32>, // by block; 0 = free
    free: Vec<BlockId>,
    sequences: BTreeMap<SequenceId, Sequence>,
    next: u64,
    copies: Vec<(BlockId, BlockId)>,
    prefixes: Prefixes,
    states: States,
}

#[derive(Clone, Debug, Default)]
struct Sequence {
    blocks: Vec<BlockId>,
    len: usize,
    state: SequenceState,
    recorded: usize,         // blocks that are found by their tokens
    salt: Option<CacheSalt>, // and by it
}

impl PagedCache {
    /// An empty cache of at most `max_blocks` blocks of `block_positions` positions each.
    ///
    /// # Panics
    ///
    /// If `block_positions` is 0.
    #[must_use]
    pub fn new(block_positions: usize, max_blocks: usize) -> Self {
        assert!(block_positions > 0, "a block has positions");
        Self {
            block_positions,
            max_blocks,
            references: vec![],
            free: vec![],
            sequences: BTreeMap::new(),
            next: 0,
            copies: vec![],
            prefixes: Prefixes::default(),
            states: States::default(),
        }
    }

    /// Keeps up to `blocks` blocks that no sequence has, to be found by their tokens: those that
    /// were not used for the longest time make room for others. 0, as at first, keeps none.
    pub fn keep_prefixes(&mut self, blocks: usize) {
        self.prefixes.max_idle = blocks;
        self.forget_idle(blocks);
    }

    /// A new, empty sequence without a salt.
    pub fn create(&mut self) -> SequenceId {
        self.insert(Sequence::default())
    }

    /// A new sequence with the same contents, sharing all blocks until one of the two writes.
    ///
    /// # Errors
    ///
    /// If the sequence is not here.
    pub fn fork(&mut self, sequence: SequenceId) -> Result<SequenceId, ModelError> {
        let mut fork = self.get(sequence)?.clone();
        for &block in &fork.blocks {
            self.hold(block);
        }
        fork.state = self.fork_state(sequence)?;
        Ok(self.insert(fork))
    }

    /// Reserves `positions` more positions, to be written by the next step.
    ///
    /// # Errors
    ///
    /// If the sequence is not here, or there are not enough free blocks; nothing is changed
    /// then.
    pub fn extend(&mut self, sequence: SequenceId, positions: usize) -> Result<(), ModelError> {
        let Sequence { blocks, len, .. } = self.get(sequence)?;
        let partial = len % self.block_positions != 0 && positions > 0;
        let shared = blocks.last().copied().filter(|&block| partial && self.is_shared(block));
        let fresh = self.needed_blocks(sequence, positions)?;
        let needed = self.needed(sequence, positions)?;
        if needed > self.free_blocks() {
            let free = self.free_blocks();
            return Err(ModelError::CacheFull { needed, free, blocks: self.max_blocks });
        }

        if positions > 0 {
            self.provide_state(sequence, fresh)?;
        }
        let mut fresh: Vec<BlockId> = (0..fresh).map(|_| self.take_block()).collect();
        if let (Some(from), Some(to)) = (shared, shared.and_then(|_| fresh.pop())) {
            self.copies.push((from, to));
            self.get_mut(sequence)?.blocks.pop();
            self.let_go(from); // another owner has it still
            fresh.insert(0, to);
        }
        let owner = self.get_mut(sequence)?;
        owner.blocks.extend(fresh);
        owner.len += positions;
        Ok(())
    }

    /// Free blocks that this many more positions take, with those that a recurrent state counts as.
    ///
    /// # Errors
    ///
    /// If the sequence is not here.
    pub fn needed(&self, sequence: SequenceId, positions: usize) -> Result<usize, ModelError> {
        let needs_state = positions > 0 && self.needs_state(&self.get(sequence)?.state);
        let state = if needs_state { self.states.cost } else { 0 };
        Ok(self.needed_blocks(sequence, positions)? + state)
    }

    fn needed_blocks(&self, sequence: SequenceId, positions: usize) -> Result<usize, ModelError> {
        let Sequence { blocks, len, .. } = self.get(sequence)?;
        let partial = len % self.block_positions != 0 && positions > 0;
        let copied = blocks.last().is_some_and(|&block| partial && self.is_shared(block));
        let more = len.saturating_add(positions).div_ceil(self.block_positions) - blocks.len();
        Ok(more + usize::from(copied))
    }

    /// Drops the positions from `len` on. A longer `len` changes nothing. Where sequences have recurrent states,
    /// those after the last snapshot before `len` are dropped as well, unless the next positions were
    /// [tentative](Self::mark_tentative): [`len`](Self::len) says what is left.
    ///
    /// # Errors
    ///
    /// If the sequence is not here.
    pub fn truncate(&mut self, sequence: SequenceId, len: usize) -> Result<(), ModelError> {
        self.step_failed(); // one that was begun and is not done
        if len >= self.get(sequence)?.len {
            return Ok(());
        }
        let len = self.rewind_state(sequence, len)?;
        self.cut(sequence, len);
        Ok(())
    }

    /// Drops the positions of a sequence that is here from `len` on.
    fn cut(&mut self, sequence: SequenceId, len: usize) {
        let keep = len.div_ceil(self.block_positions);
        let full = len / self.block_positions;
        let Some(owner) = self.sequences.get_mut(&sequence) else { return };
        owner.len = len;
        owner.recorded = owner.recorded.min(full);
        let dropped = owner.blocks.split_off(keep.min(owner.blocks.len()));
        self.release(dropped);
    }

    /// Forgets a sequence. One that is not here is no error.
    pub fn remove(&mut self, sequence: SequenceId) {
        if let Some(owner) = self.sequences.remove(&sequence) {
            self.release_state(&owner.state);
            self.release(owner.blocks);
        }
    }

    /// Positions of a sequence.
    ///
    /// # Errors
    ///
    /// If the sequence is not here.
    pub fn len(&self, sequence: SequenceId) -> Result<usize, ModelError> {
        Ok(self.get(sequence)?.len)
    }

    /// The blocks of a sequence, in order of position.
    ///
    /// # Errors
    ///
    /// If the sequence is not here.
    pub fn blocks(&self, sequence: SequenceId) -> Result<&[BlockId], ModelError> {
        Ok(&self.get(sequence)?.blocks)
    }

    /// Blocks that can still be taken, idle ones among them.
    #[must_use]
    pub fn free_blocks(&self) -> usize {
        self.unused_blocks() + self.prefixes.idle + self.states.blocks().1
    }

    /// Blocks that neither a block nor a state takes.
    fn unused_blocks(&self) -> usize {
        let used = self.references.len() - self.free.len() + self.states.blocks().0;
        self.max_blocks.saturating_sub(used)
    }

    /// Lets what is idle give way until this many blocks are unused, as far as that can be.
    fn make_room(&mut self, blocks: usize) {
        while self.unused_blocks() < blocks {
            let before = self.prefixes.idle;
            self.forget_idle(before.saturating_sub(1));
            if self.prefixes.idle == before && !self.states.forget_oldest() {
                return;
            }
        }
    }

    /// Most blocks in use at once since the cache was last empty: what a backend must have memory
    /// for.
    #[must_use]
    pub fn high_water_blocks(&self) -> usize {
        self.references.len()
    }

    /// Most blocks that there can be.
    #[must_use]
    pub fn max_blocks(&self) -> usize {
        self.max_blocks
    }

    /// Positions of a block.
    #[must_use]
    pub fn block_positions(&self) -> usize {
        self.block_positions
    }

    /// The copies `(from, to)` that must be made, in order, before the next step writes.
    #[must_use]
    pub fn copies(&self) -> &[(BlockId, BlockId)] {
        &self.copies
    }

    /// The [`copies`](Self::copies) have been made.
    pub fn copies_made(&mut self) {
        self.copies.clear();
        self.states.copies.clear();
    }

    /// Whether a block has several owners, so that none may write to it.
    #[must_use]
    pub fn is_shared(&self, block: BlockId) -> bool {
        self.references.get(block.0 as usize).is_some_and(|&references| references > 1)
    }

    fn insert(&mut self, sequence: Sequence) -> SequenceId {
        let id = SequenceId(self.next);
        self.next += 1;
        self.sequences.insert(id, sequence);
        id
    }

    /// A block for one owner; an idle one only where there is no other.
    fn take_block(&mut self) -> BlockId {
        self.make_room(1);
        let block = self.free.pop().unwrap_or_else(|| {
            self.references.push(0);
            BlockId(u32::try_from(self.references.len() - 1).expect("fewer than 2^32 blocks"))
        });
        self.references[block.0 as usize] = 1;
        block
    }

    /// Another owner has this block.
    fn hold(&mut self, block: BlockId) {
        let references = &mut self.references[block.0 as usize];
        *references += 1;
        if *references == 2 && self.prefixes.contains(block) {
            self.prefixes.idle -= 1;
        }
    }

    /// One owner has it no longer.
    fn let_go(&mut self, block: BlockId) {
        let references = &mut self.references[block.0 as usize];
        *references -= 1;
        match *references {
            0 => {
                self.free.push(block);
                self.states.forget(block);
            }
            1 if self.prefixes.contains(block) => self.prefixes.idle += 1,
            _ => {}
        }
    }

    fn release(&mut self, blocks: Vec<BlockId>) {
        for block in blocks {
            self.let_go(block);
        }
        self.forget_idle(self.prefixes.max_idle);
    }

    /// No sequence is here: memory that was refused once must not be requested again.
    fn forget_memory(&mut self) {
        if self.free.len() == self.references.len() {
            self.free.clear();
            self.references.clear();
            self.copies.clear();
        }
        self.states.forget_memory();
    }

    fn get(&self, sequence: SequenceId) -> Result<&Sequence, ModelError> {
        self.sequences.get(&sequence).ok_or(ModelError::UnknownSequence(sequence))
    }

    fn get_mut(&mut self, sequence: SequenceId) -> Result<&mut Sequence, ModelError> {
        self.sequences.get_mut(&sequence).ok_or(ModelError::UnknownSequence(sequence))
    }
}

#[cfg(test)]
mod state_tests;
#[cfg(test)]
mod tests;
