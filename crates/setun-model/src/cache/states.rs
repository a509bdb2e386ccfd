//! Ownership of the recurrent states of sequences.
//!
//! A state cannot be cut: it has taken in all positions before some number. So a sequence has one of its own, and
//! snapshots of it stay at the ends of some blocks, to be found with the blocks' tokens. States are counted by
//! reference; one with several owners is read only, and a sequence that goes on from it writes to another.

use std::collections::BTreeMap;

use setun_ops::{BlockId, HAS_RECURRENT, StateId, numeric::to_u32};

use super::PagedCache;
use crate::{batch::SequenceId, error::ModelError};

/// The states of a cache.
#[derive(Clone, Debug, Default)]
pub(super) struct States {
    /// Blocks that a state counts as; 0 where there are none.
    pub(super) cost: usize,
    pub(super) references: Vec<u32>, // by state; 0 = free
    pub(super) free: Vec<StateId>,
    pub(super) copies: Vec<(StateId, StateId)>,
    pub(super) snapshots: BTreeMap<BlockId, Snapshot>, // by the block that ends there
    pub(super) clock: u64,
    pub(super) pending: Vec<Pending>,
    pub(super) is_running: bool, // a step that writes to the pending ones has begun
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Snapshot {
    pub(super) state: StateId,
    pub(super) used: u64,
}

/// What a step will have changed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    pub(super) sequence: SequenceId,
    pub(super) stored: (StateId, usize),
    pub(super) rows: usize,
    pub(super) snapshot: Option<Taken>,
}

/// A snapshot that a step takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Taken {
    pub(super) state: StateId,
    pub(super) position: usize,
    pub(super) is_prompt: bool, // and not of a token or its drafts
}

/// The state of a sequence.
#[derive(Clone, Debug, Default)]
pub(super) struct SequenceState {
    pub(super) state: Option<(StateId, usize)>, // and the positions that it has taken in
    pub(super) rows: usize,                     // positions computed, tentative ones included
    pub(super) target: Option<StateId>,         // its own, which the next step writes to
    pub(super) tentative: usize,                // of the positions that are reserved
    pub(super) last: Option<(usize, bool)>,     // snapshot, and whether a prompt's
}

impl States {
    /// Whether sequences have states; never in a build without recurrent layers.
    pub(super) fn are_used(&self) -> bool {
        HAS_RECURRENT && self.cost > 0
    }

    pub(super) fn hold(&mut self, state: StateId) {
        self.references[state.0 as usize] += 1;
    }

    pub(super) fn let_go(&mut self, state: StateId) {
        let references = &mut self.references[state.0 as usize];
        *references -= 1;
        if *references == 0 {
            self.free.push(state);
        }
    }

    fn is_shared(&self, state: StateId) -> bool {
        self.references[state.0 as usize] > 1
    }

    /// Whether only a snapshot owns a state.
    pub(super) fn is_idle(&self, state: StateId) -> bool {
        self.references[state.0 as usize] == 1
    }

    /// States with an owner.
    fn held(&self) -> usize {
        self.references.len() - self.free.len()
    }

    /// Snapshots that no sequence goes on from.
    fn idle(&self) -> usize {
        if !self.are_used() {
            return 0;
        }
        self.snapshots.values().filter(|snapshot| !self.is_shared(snapshot.state)).count()
    }

    /// Blocks charged for all states, and for idle snapshots.
    pub(super) fn blocks(&self) -> (usize, usize) {
        (self.held() * self.cost, self.idle() * self.cost)
    }

    /// Forgets the snapshot at the end of a block.
    pub(super) fn forget(&mut self, block: BlockId) {
        if self.are_used()
            && let Some(snapshot) = self.snapshots.remove(&block)
        {
            self.let_go(snapshot.state);
        }
    }

    /// Forgets the idle snapshot that was not used for the longest time.
    pub(super) fn forget_oldest(&mut self) -> bool {
        if !self.are_used() {
            return false;
        }
        let idle = self.snapshots.iter().filter(|(_, snapshot)| !self.is_shared(snapshot.state));
        let oldest = idle.min_by_key(|(block, snapshot)| (snapshot.used, **block));
        let block = oldest.map(|(block, _)| *block);
        if let Some(block) = block {
            self.forget(block);
        }
        block.is_some()
    }

    /// The snapshot of one block is that of another, which holds the same.
    pub(super) fn hand_over(&mut self, from: BlockId, to: BlockId) {
        if self.are_used()
            && let Some(snapshot) = self.snapshots.remove(&from)
        {
            match self.snapshots.get(&to) {
                Some(_) => self.let_go(snapshot.state),
                None => drop(self.snapshots.insert(to, snapshot)),
            }
        }
    }

    pub(super) fn rename(&mut self, moves: &BTreeMap<BlockId, BlockId>) {
        if !self.are_used() {
            return;
        }
        let moved = |block: BlockId| moves.get(&block).copied().unwrap_or(block);
        let all = std::mem::take(&mut self.snapshots);
        self.snapshots = all.into_iter().map(|(block, kept)| (moved(block), kept)).collect();
    }

    /// Nothing is held: memory that was refused once must not be requested again.
    pub(super) fn forget_memory(&mut self) {
        if self.free.len() == self.references.len() {
            self.free.clear();
            self.references.clear();
            self.copies.clear();
        }
    }

    pub(super) fn take(&mut self) -> StateId {
        // The lowest, so that those at the end can be given up.
        let lowest = (0..self.free.len()).min_by_key(|&index| self.free[index]);
        let state = if let Some(index) = lowest {
            self.free.swap_remove(index)
        } else {
            self.references.push(0);
            StateId(to_u32(self.references.len() - 1))
        };
        self.references[state.0 as usize] = 1;
        state
    }
}

impl PagedCache {
    /// Gives each sequence a recurrent state, which counts as this many blocks.
    pub fn keep_states(&mut self, blocks: usize) {
        self.states.cost = blocks;
    }

    /// Blocks that a sequence's recurrent state counts as; 0 where it has none.
    #[must_use]
    pub fn state_blocks(&self) -> usize {
        self.states.cost
    }

    /// Most recurrent states in use at once since the cache was last empty.
    #[must_use]
    pub fn high_water_states(&self) -> usize {
        self.states.references.len()
    }

    /// The state of a sequence after all its positions, and the positions that it has taken in: to be
    /// copied out.
    ///
    /// # Errors
    ///
    /// If the sequence is not here.
    pub fn state(&self, sequence: SequenceId) -> Result<Option<(StateId, usize)>, ModelError> {
        Ok(self.get(sequence)?.state.state)
    }

    /// The last `positions` of those that a sequence has reserved may be dropped again after the next step, as drafts
    /// are: its state takes in those before alone.
    ///
    /// # Errors
    ///
    /// If the sequence is not here.
    pub fn mark_tentative(
        &mut self,
        sequence: SequenceId,
        positions: usize,
    ) -> Result<(), ModelError> {
        self.get_mut(sequence)?.state.tentative = positions;
        Ok(())
    }

    /// Whether the next step of a sequence must allocate a state. It need not where only a snapshot shares its own,
    /// as that gives way.
    pub(super) fn needs_state(&self, state: &SequenceState) -> bool {
        let is_own = |(id, _): (StateId, usize)| {
            !self.states.is_shared(id) || self.snapshot_of(id).is_some()
        };
        self.states.are_used() && state.target.is_none() && !state.state.is_some_and(is_own)
    }

    /// The block at whose end a state is a snapshot, if it has no owner but that and one sequence.
    fn snapshot_of(&self, id: StateId) -> Option<BlockId> {
        if self.states.references[id.0 as usize] != 2 {
            return None;
        }
        let mut all = self.states.snapshots.iter();
        all.find(|(_, snapshot)| snapshot.state == id).map(|(block, _)| *block)
    }

    /// Gives a sequence a state of its own to write to, beside as many fresh blocks. The caller has seen that
    /// there is room for what [`needs_state`](Self::needs_state) says.
    pub(super) fn provide_state(
        &mut self,
        sequence: SequenceId,
        fresh: usize,
    ) -> Result<(), ModelError> {
        if !self.states.are_used() {
            return Ok(());
        }
        let state = &self.get(sequence)?.state;
        if state.target.is_some() {
            return Ok(());
        }
        let own = state.state.map(|(own, _)| own);
        let snapshot = own.and_then(|own| self.snapshot_of(own));
        if snapshot.is_some() {
            self.make_room(self.states.cost + fresh);
        }
        // A snapshot stays where there is room for another state.
        let has_room =
            self.unused_blocks() >= self.states.cost + fresh && self.has_state_memory(fresh);
        if let Some(block) = snapshot.filter(|_| !has_room) {
            self.states.forget(block);
        }
        let target = match own {
            Some(own) if !self.states.is_shared(own) => {
                self.states.hold(own);
                own
            }
            _ => {
                self.make_room(self.states.cost);
                self.states.take()
            }
        };
        self.get_mut(sequence)?.state.target = Some(target);
        Ok(())
    }

    /// Shares the state of a sequence with a fork; the next step of either writes to another.
    pub(super) fn fork_state(&mut self, sequence: SequenceId) -> Result<SequenceState, ModelError> {
        if !self.states.are_used() {
            return Ok(SequenceState::default());
        }
        let state = &mut self.get_mut(sequence)?.state;
        let own = state.state.map(|(own, _)| own);
        let given_up = state.target.take_if(|target| Some(*target) == own);
        let fork = SequenceState { target: None, ..state.clone() };
        if let Some(own) = given_up {
            self.states.let_go(own);
        }
        if let Some(own) = own {
            self.states.hold(own);
        }
        Ok(fork)
    }

    pub(super) fn release_state(&mut self, state: &SequenceState) {
        if !self.states.are_used() {
            return;
        }
        for id in state.state.map(|(id, _)| id).into_iter().chain(state.target) {
            self.states.let_go(id);
        }
    }

    /// Goes back to `len` positions, or to the last snapshot before; says how many are kept.
    pub(super) fn rewind_state(
        &mut self,
        sequence: SequenceId,
        len: usize,
    ) -> Result<usize, ModelError> {
        let state = &self.get(sequence)?.state;
        let (base, rows) = (state.state.map_or(0, |(_, base)| base), state.rows);
        if !self.states.are_used() || len >= rows {
            return Ok(len);
        }
        if len >= base {
            self.get_mut(sequence)?.state.rows = len;
            return Ok(len);
        }
        self.go_to_snapshot(sequence, len)
    }

    /// Goes back to the last snapshot at `len` positions or before; says how many are kept.
    pub(super) fn go_to_snapshot(
        &mut self,
        sequence: SequenceId,
        len: usize,
    ) -> Result<usize, ModelError> {
        let mut blocks = self.get(sequence)?.blocks[..len / self.block_positions].to_vec();
        let snapshot = self.until_snapshot(&mut blocks);
        let kept = if snapshot.is_some() { blocks.len() } else { 0 };
        let before = snapshot.map(|state| self.begin_at(&blocks, state)).unwrap_or_default();
        let old = std::mem::replace(&mut self.get_mut(sequence)?.state, before);
        self.release_state(&old);
        Ok(kept * self.block_positions)
    }
}
