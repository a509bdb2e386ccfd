//! Making the memory of a cache small again.

use std::collections::{BTreeMap, BTreeSet};

use setun_ops::{BlockId, HAS_RECURRENT};

use super::PagedCache;

impl PagedCache {
    /// Blocks in use, by sequences or by the tokens that they hold, and those that recurrent states count as.
    #[must_use]
    pub fn held_blocks(&self) -> usize {
        self.references.len() - self.free.len() + self.states.blocks().0
    }

    /// Moves blocks and recurrent states so that those in use come first, and forgets that there were more:
    /// [`high_water_blocks`](Self::high_water_blocks) are then as few as can be. Each move is one
    /// more of the [`copies`](Self::copies) or [`state_copies`](Self::state_copies) to be made. All that sequences
    /// have was computed.
    pub fn compact(&mut self) {
        self.forget_copies();
        let held = self.references.len() - self.free.len();
        let is_first = |block: BlockId| (block.0 as usize) < held;
        let mut holes: Vec<_> =
            self.free.drain(..).filter(|&block| is_first(block)).map(|block| block.0).collect();
        holes.sort_unstable();
        let mut holes = holes.into_iter().map(BlockId);
        let mut moves = BTreeMap::new();
        for (from, block) in (0..).map(BlockId).enumerate().take(self.references.len()).skip(held) {
            if self.references[from] > 0
                && let Some(to) = holes.next()
            {
                self.references[to.0 as usize] = self.references[from];
                self.copies.push((block, to));
                moves.insert(block, to);
            }
        }
        self.references.truncate(held);
        let blocks = self.sequences.values_mut().flat_map(|sequence| &mut sequence.blocks);
        for block in blocks {
            *block = moves.get(block).copied().unwrap_or(*block);
        }
        self.prefixes.rename(&moves);
        self.states.rename(&moves);
        if HAS_RECURRENT {
            self.compact_states();
        }
    }

    /// Lets there be at most this many blocks from now on, or those in use where they are more.
    pub fn set_max_blocks(&mut self, blocks: usize) {
        self.max_blocks = blocks.max(self.held_blocks());
        if self.references.len() > self.max_blocks {
            self.compact();
        }
    }

    /// Leaves out copies to blocks that have no owner, unless they are copied on from there.
    fn forget_copies(&mut self) {
        let (mut sources, mut needed) = (BTreeSet::new(), vec![]);
        for (from, to) in self.copies.drain(..).rev() {
            if self.references[to.0 as usize] > 0 || sources.contains(&to) {
                sources.insert(from);
                needed.push((from, to));
            }
        }
        needed.reverse();
        self.copies = needed;
    }
}
