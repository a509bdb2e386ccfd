//! Who owns which block of the paged KV cache.
//!
//! A sequence is a list of blocks and a length. Blocks are counted by reference, so that a
//! fork shares them; a shared block is copied when one of its owners is about to write to it.
//! This is bookkeeping only: the memory belongs to a backend, which is told of the copies.

use std::collections::BTreeMap;

use setun_ops::BlockId;

use crate::error::ModelError;

/// A sequence of a [`PagedCache`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SequenceId(pub u64);

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
}

#[derive(Clone, Debug, Default)]
struct Sequence {
    blocks: Vec<BlockId>,
    len: usize,
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
        }
    }

    /// A new, empty sequence.
    pub fn create(&mut self) -> SequenceId {
        self.insert(Sequence::default())
    }

    /// A new sequence with the same contents, sharing all blocks until one of the two writes.
    ///
    /// # Errors
    ///
    /// If the sequence is not here.
    pub fn fork(&mut self, sequence: SequenceId) -> Result<SequenceId, ModelError> {
        let twin = self.get(sequence)?.clone();
        for block in &twin.blocks {
            self.references[block.0 as usize] += 1;
        }
        Ok(self.insert(twin))
    }

    /// Reserves `positions` more positions, to be written by the next step.
    ///
    /// # Errors
    ///
    /// If the sequence is not here, or there are not enough free blocks; nothing is changed
    /// then.
    pub fn extend(&mut self, sequence: SequenceId, positions: usize) -> Result<(), ModelError> {
        let Sequence { blocks, len } = self.get(sequence)?;
        let partial = len % self.block_positions != 0 && positions > 0;
        let shared = blocks.last().copied().filter(|&block| partial && self.is_shared(block));
        let more = len.saturating_add(positions).div_ceil(self.block_positions) - blocks.len();
        let needed = more + usize::from(shared.is_some());
        if needed > self.free_blocks() {
            let free = self.free_blocks();
            return Err(ModelError::CacheFull { needed, free, blocks: self.max_blocks });
        }

        let mut fresh: Vec<BlockId> = (0..needed).map(|_| self.take_block()).collect();
        if let (Some(from), Some(to)) = (shared, shared.and_then(|_| fresh.pop())) {
            self.copies.push((from, to));
            self.references[from.0 as usize] -= 1;
            self.get_mut(sequence)?.blocks.pop();
            fresh.insert(0, to);
        }
        let owner = self.get_mut(sequence)?;
        owner.blocks.extend(fresh);
        owner.len += positions;
        Ok(())
    }

    /// Drops the positions from `len` on. A longer `len` changes nothing.
    ///
    /// # Errors
    ///
    /// If the sequence is not here.
    pub fn truncate(&mut self, sequence: SequenceId, len: usize) -> Result<(), ModelError> {
        let keep = len.div_ceil(self.block_positions);
        let owner = self.get_mut(sequence)?;
        if len >= owner.len {
            return Ok(());
        }
        owner.len = len;
        let dropped = owner.blocks.split_off(keep);
        self.release(dropped);
        Ok(())
    }

    /// Forgets a sequence. One that is not here is no error.
    pub fn remove(&mut self, sequence: SequenceId) {
        if let Some(owner) = self.sequences.remove(&sequence) {
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

    /// Blocks that can still be taken.
    #[must_use]
    pub fn free_blocks(&self) -> usize {
        self.free.len() + self.max_blocks.saturating_sub(self.references.len())
    }

    /// Most blocks in use at once since the cache was last empty: what a backend must have memory
    /// for.
    #[must_use]
    pub fn high_water_blocks(&self) -> usize {
        self.references.len()
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

    fn take_block(&mut self) -> BlockId {
        let block = self.free.pop().unwrap_or_else(|| {
            self.references.push(0);
            BlockId(u32::try_from(self.references.len() - 1).expect("fewer than 2^32 blocks"))
        });
        self.references[block.0 as usize] = 1;
        block
    }

    fn release(&mut self, blocks: Vec<BlockId>) {
        for block in blocks {
            let references = &mut self.references[block.0 as usize];
            *references -= 1;
            if *references == 0 {
                self.free.push(block);
            }
        }
        if self.free.len() == self.references.len() {
            // Nobody is here: memory that was refused once must not be asked for again.
            self.free.clear();
            self.references.clear();
            self.copies.clear();
        }
    }

    fn get(&self, sequence: SequenceId) -> Result<&Sequence, ModelError> {
        self.sequences.get(&sequence).ok_or(ModelError::UnknownSequence(sequence))
    }

    fn get_mut(&mut self, sequence: SequenceId) -> Result<&mut Sequence, ModelError> {
        self.sequences.get_mut(&sequence).ok_or(ModelError::UnknownSequence(sequence))
    }
}

#[cfg(test)]
mod tests;
