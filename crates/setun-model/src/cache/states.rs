//! Ownership of the recurrent states of sequences.
//!
//! A state cannot be cut: it has taken in all positions before some number. So a sequence has one of its own, and
//! snapshots of it stay at the ends of some blocks, to be found with the blocks' tokens. States are counted by
//! reference; one with several owners is read only, and a sequence that goes on from it writes to another.

use std::collections::BTreeMap;

use setun_ops::{BlockId, StateId, numeric::to_u32, recurrent::StateRows};

use super::{PagedCache, Sequence};
use crate::{batch::SequenceId, error::ModelError};

/// The states of a cache.
#[derive(Clone, Debug, Default)]
pub(super) struct States {
    /// Blocks that a state counts as; 0 where there are none.
    pub(super) cost: usize,
    references: Vec<u32>, // by state; 0 = free
    free: Vec<StateId>,
    pub(super) snapshots: BTreeMap<BlockId, Snapshot>, // by the block that ends there
    pub(super) clock: u64,
    pending: Vec<Pending>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Snapshot {
    pub(super) state: StateId,
    pub(super) used: u64,
}

/// What a step will have changed.
#[derive(Clone, Copy, Debug)]
struct Pending {
    sequence: SequenceId,
    stored: (StateId, usize),
    rows: usize,
    snapshot: Option<Taken>,
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

    /// States with an owner.
    fn held(&self) -> usize {
        self.references.len() - self.free.len()
    }

    /// Snapshots that no sequence goes on from.
    fn idle(&self) -> usize {
        self.snapshots.values().filter(|snapshot| !self.is_shared(snapshot.state)).count()
    }

    /// Blocks that states count as: all, and those that can be had.
    pub(super) fn blocks(&self) -> (usize, usize) {
        (self.held() * self.cost, self.idle() * self.cost)
    }

    /// Forgets the snapshot at the end of a block.
    pub(super) fn forget(&mut self, block: BlockId) {
        if let Some(snapshot) = self.snapshots.remove(&block) {
            self.let_go(snapshot.state);
        }
    }

    /// Forgets the idle snapshot that was not used for the longest time.
    pub(super) fn forget_oldest(&mut self) -> bool {
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
        if let Some(snapshot) = self.snapshots.remove(&from) {
            match self.snapshots.get(&to) {
                Some(_) => self.let_go(snapshot.state),
                None => drop(self.snapshots.insert(to, snapshot)),
            }
        }
    }

    pub(super) fn rename(&mut self, moves: &BTreeMap<BlockId, BlockId>) {
        let moved = |block: BlockId| moves.get(&block).copied().unwrap_or(block);
        let all = std::mem::take(&mut self.snapshots);
        self.snapshots = all.into_iter().map(|(block, kept)| (moved(block), kept)).collect();
    }

    /// Nothing is held: memory that was refused once must not be requested again.
    pub(super) fn forget_memory(&mut self) {
        if self.free.len() == self.references.len() {
            self.free.clear();
            self.references.clear();
        }
    }

    /// Forgets free states at the end.
    pub(super) fn compact(&mut self) {
        while self.references.last() == Some(&0) {
            self.references.pop();
        }
        let len = self.references.len();
        self.free.retain(|state| (state.0 as usize) < len);
    }

    pub(super) fn take(&mut self) -> StateId {
        let state = self.free.pop().unwrap_or_else(|| {
            self.references.push(0);
            StateId(to_u32(self.references.len() - 1))
        });
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

    /// Whether a sequence's next step writes to a state that is still to be taken.
    pub(super) fn needs_state(&self, state: &SequenceState) -> bool {
        let is_own = |(id, _): (StateId, usize)| !self.states.is_shared(id);
        self.states.cost > 0 && state.target.is_none() && !state.state.is_some_and(is_own)
    }

    /// Gives a sequence a state of its own to write to. There is room.
    pub(super) fn provide_state(&mut self, sequence: SequenceId) -> Result<(), ModelError> {
        if self.states.cost == 0 {
            return Ok(());
        }
        let state = &self.get(sequence)?.state;
        let target = match (state.target, state.state) {
            (Some(target), _) => target,
            (None, Some((own, _))) if !self.states.is_shared(own) => {
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

    /// The state of a sequence for another, until one of them goes on: neither may write to it.
    pub(super) fn fork_state(&mut self, sequence: SequenceId) -> Result<SequenceState, ModelError> {
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
        let owner = self.get(sequence)?;
        let state = &owner.state;
        let (base, rows) = (state.state.map_or(0, |(_, base)| base), state.rows);
        if self.states.cost == 0 || len >= rows {
            return Ok(len);
        }
        if len >= base {
            self.get_mut(sequence)?.state.rows = len;
            return Ok(len);
        }
        let mut blocks = owner.blocks[..len / self.block_positions].to_vec();
        let snapshot = self.until_snapshot(&mut blocks);
        let before = snapshot.map(|snapshot| self.begin_at(&blocks, snapshot)).unwrap_or_default();
        let old = std::mem::replace(&mut self.get_mut(sequence)?.state, before);
        self.release_state(&old);
        Ok(blocks.len() * self.block_positions)
    }

    /// What a step does with the state of a sequence whose rows have these positions. Nothing has
    /// changed until [`step_done`](Self::step_done).
    ///
    /// # Errors
    ///
    /// If the sequence is not here, or the rows do not follow those before.
    pub(crate) fn begin_rows(
        &mut self,
        sequence: SequenceId,
        (first, end): (usize, usize),
    ) -> Result<StateRows, ModelError> {
        self.provide_state(sequence)?;
        let Sequence { state, len, blocks, .. } = self.get(sequence)?;
        if first != state.rows {
            return Err(ModelError::StatePosition { position: first, expected: state.rows });
        }
        let base = state.state.map_or(0, |(_, base)| base);
        let certain = end.min(len - state.tentative.min(*len)).max(first + 1);
        let is_prompt = end - first > 1 + state.tentative;
        let position = certain / self.block_positions * self.block_positions;
        let block = blocks.get((position / self.block_positions).wrapping_sub(1)).copied();
        let (loaded, target) = (state.state, state.target);
        let is_new = block.is_some_and(|block| !self.states.snapshots.contains_key(&block));
        let snapshot = if is_new && position > base { self.spare_state() } else { None };
        let snapshot = snapshot.map(|state| Taken { state, position, is_prompt });
        let Some(target) = target else {
            return Err(ModelError::StatePosition { position: first, expected: base });
        };
        let stored = (target, certain);
        self.states.pending.push(Pending { sequence, stored, rows: end, snapshot });
        let place = |position: usize| to_u32(position);
        let taken = snapshot.map(|taken| (taken.state, place(taken.position)));
        Ok(StateRows {
            loaded: loaded.map(|(id, base)| (id, place(base))),
            stored: taken.into_iter().chain([(target, place(certain))]).collect(),
        })
    }

    /// The step of the rows that were begun has been computed.
    pub(crate) fn step_done(&mut self) {
        for Pending { sequence, stored, rows, snapshot } in std::mem::take(&mut self.states.pending)
        {
            let Some(owner) = self.sequences.get_mut(&sequence) else {
                if let Some(taken) = snapshot {
                    self.states.let_go(taken.state);
                }
                continue;
            };
            let before = owner.state.state.replace(stored);
            (owner.state.rows, owner.state.target, owner.state.tentative) = (rows, None, 0);
            if let Some((before, _)) = before {
                self.states.let_go(before);
            }
            if let Some(taken) = snapshot {
                self.keep_snapshot(sequence, taken);
            }
        }
    }

    /// The step of the rows that were begun has not run.
    pub(crate) fn step_failed(&mut self) {
        for Pending { snapshot, .. } in std::mem::take(&mut self.states.pending) {
            if let Some(taken) = snapshot {
                self.states.let_go(taken.state);
            }
        }
    }
}
