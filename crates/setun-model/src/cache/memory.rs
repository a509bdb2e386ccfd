//! Memory of blocks and of recurrent states, which share one budget.
//!
//! A backend's memory for blocks cannot hold states, and its memory for states cannot hold blocks. Unused memory of
//! one kind counts in the budget, so [`PagedCache::compact_for`] gives it back before the other kind grows.

use std::collections::BTreeMap;

use setun_ops::StateId;

use super::PagedCache;
use crate::{batch::SequenceId, error::ModelError};

impl PagedCache {
    /// Blocks that a backend must have memory for, with those that recurrent states count as.
    #[must_use]
    pub fn high_water(&self) -> usize {
        self.high_water_blocks() + self.high_water_states() * self.states.cost
    }

    /// Most blocks that a backend may have memory for. The recurrent states take the rest of the budget.
    #[must_use]
    pub fn max_blocks_beside_states(&self) -> usize {
        self.max_blocks.saturating_sub(self.high_water_states() * self.states.cost)
    }

    /// The number of blocks to pass to [`compact_for`](Self::compact_for) before a sequence gets this many more
    /// positions. None if the memory already fits [`max_blocks`](Self::max_blocks), or if
    /// [`extend`](Self::extend) will be refused. Drops idle blocks and snapshots, as `extend` does.
    ///
    /// # Errors
    ///
    /// If the sequence is not here.
    #[inline]
    pub fn lacks_memory(
        &mut self,
        sequence: SequenceId,
        positions: usize,
    ) -> Result<Option<usize>, ModelError> {
        if self.states.are_used() { self.lacking(sequence, positions) } else { Ok(None) }
    }

    fn lacking(
        &mut self,
        sequence: SequenceId,
        positions: usize,
    ) -> Result<Option<usize>, ModelError> {
        let fresh = self.needed_blocks(sequence, positions)?;
        let needed = self.needed(sequence, positions)?;
        if needed > self.free_blocks() {
            return Ok(None);
        }
        self.make_room(needed);
        let blocks = fresh.saturating_sub(self.free.len());
        let is_state_there = needed == fresh || !self.states.free.is_empty();
        let state = if is_state_there { 0 } else { self.states.cost };
        let fits = self.high_water() + blocks + state <= self.max_blocks;
        Ok((!fits).then_some(needed))
    }

    /// Drops idle blocks and snapshots until this many blocks are unused, then [compacts](Self::compact).
    pub fn compact_for(&mut self, blocks: usize) {
        self.make_room(blocks);
        self.compact();
    }

    /// The copies of recurrent states `(from, to)` that must be made, in order, before the next step.
    #[must_use]
    pub fn state_copies(&self) -> &[(StateId, StateId)] {
        &self.states.copies
    }

    /// Whether the budget has memory for one more state and this many fresh blocks.
    pub(super) fn has_state_memory(&self, fresh: usize) -> bool {
        let blocks = fresh.saturating_sub(self.free.len());
        let is_free = !self.states.free.is_empty();
        is_free || self.high_water() + blocks + self.states.cost <= self.max_blocks
    }

    /// Moves recurrent states so that those in use come first, and forgets that there were more.
    pub(super) fn compact_states(&mut self) {
        if !self.states.are_used() {
            return;
        }
        let held = self.states.references.len() - self.states.free.len();
        let mut holes: Vec<_> =
            self.states.free.drain(..).filter(|state| (state.0 as usize) < held).collect();
        holes.sort_unstable();
        let used = (0..).map(StateId).zip(&self.states.references).skip(held);
        let used = used.filter(|(_, references)| **references > 0).map(|(state, _)| state);
        let moves: BTreeMap<_, _> = used.zip(holes).collect();
        for (&from, &to) in &moves {
            self.states.references[to.0 as usize] = self.states.references[from.0 as usize];
            self.states.copies.push((from, to));
        }
        self.states.references.truncate(held);
        self.rename_states(&moves);
    }

    fn rename_states(&mut self, moves: &BTreeMap<StateId, StateId>) {
        let rename = |state: &mut StateId| *state = moves.get(state).copied().unwrap_or(*state);
        for sequence in self.sequences.values_mut() {
            let state = &mut sequence.state;
            state.state.iter_mut().for_each(|(state, _)| rename(state));
            state.target.iter_mut().for_each(rename);
        }
        self.states.snapshots.values_mut().for_each(|snapshot| rename(&mut snapshot.state));
        for pending in &mut self.states.pending {
            rename(&mut pending.stored.0);
            pending.snapshot.iter_mut().for_each(|taken| rename(&mut taken.state));
        }
    }
}
