//! Ownership of the recurrent states of sequences.
//!
//! A state cannot be cut: it has taken in all positions before some number. So a sequence has one of its own, and
//! snapshots of it stay at the ends of some blocks, to be found with the blocks' tokens. States are counted by
//! reference; one with several owners is read only, and a sequence that goes on from it writes to another.

use std::collections::BTreeMap;

use setun_ops::{BlockId, StateId, numeric::to_u32, recurrent::StateRows};

use super::{PagedCache, Sequence};
use crate::{batch::SequenceId, error::ModelError};

/// Positions of which the last snapshot is kept: within them a later one takes the place of that before.
const SPACING: usize = 1024;

/// The states of a cache.
#[derive(Clone, Debug, Default)]
pub(super) struct States {
    /// Blocks that a state counts as; 0 where there are none.
    pub(super) cost: usize,
    references: Vec<u32>, // by state; 0 = free
    free: Vec<StateId>,
    snapshots: BTreeMap<BlockId, Snapshot>, // by the block that ends there
    clock: u64,
    pending: Vec<Pending>,
}

#[derive(Clone, Copy, Debug)]
struct Snapshot {
    state: StateId,
    used: u64,
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
struct Taken {
    state: StateId,
    position: usize,
    is_prompt: bool, // and not of a token or its drafts
}

/// The state of a sequence.
#[derive(Clone, Debug, Default)]
pub(super) struct SequenceState {
    state: Option<(StateId, usize)>, // and the positions that it has taken in
    rows: usize,                     // positions computed, tentative ones included
    target: Option<StateId>,         // its own, which the next step writes to
    tentative: usize,                // of the positions that are reserved
    last: Option<(usize, bool)>,     // snapshot, and whether a prompt's
}

impl States {
    fn hold(&mut self, state: StateId) {
        self.references[state.0 as usize] += 1;
    }

    fn let_go(&mut self, state: StateId) {
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
        block.into_iter().for_each(|block| self.forget(block));
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

    fn take(&mut self) -> StateId {
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

    /// Says that all positions which a sequence has reserved, whole blocks, are computed: its state is written to the
    /// state that is returned, which is a snapshot from then on. None where sequences have no states.
    ///
    /// # Errors
    ///
    /// If the sequence is not here.
    pub fn restore_state(&mut self, sequence: SequenceId) -> Result<Option<StateId>, ModelError> {
        let Sequence { blocks, len, .. } = self.get(sequence)?;
        let (Some(&last), len) = (blocks.last(), *len) else { return Ok(None) };
        let Some(state) = self.get_mut(sequence)?.state.target.take() else { return Ok(None) };
        let owner = &mut self.get_mut(sequence)?.state;
        let before = owner.state.replace((state, len));
        owner.rows = len;
        before.into_iter().for_each(|(before, _)| self.states.let_go(before));
        self.states.hold(state);
        self.states.clock += 1;
        let used = self.states.clock;
        if let Some(old) = self.states.snapshots.insert(last, Snapshot { state, used }) {
            self.states.let_go(old.state);
        }
        Ok(Some(state))
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

    /// The blocks of a known prefix that end at a snapshot, and the snapshot.
    pub(super) fn until_snapshot(&self, blocks: &mut Vec<BlockId>) -> Option<StateId> {
        if self.states.cost == 0 {
            return None;
        }
        let known = |block: &BlockId| self.states.snapshots.contains_key(block);
        blocks.truncate(blocks.iter().rposition(known).map_or(0, |last| last + 1));
        Some(self.states.snapshots.get(blocks.last()?)?.state)
    }

    /// The state of a sequence that begins with blocks up to a snapshot.
    pub(super) fn begin_at(&mut self, blocks: &[BlockId], state: StateId) -> SequenceState {
        self.states.hold(state);
        self.states.clock += 1;
        let clock = self.states.clock;
        if let Some(kept) = blocks.last().and_then(|last| self.states.snapshots.get_mut(last)) {
            kept.used = clock;
        }
        let rows = blocks.len() * self.block_positions;
        SequenceState { state: Some((state, rows)), rows, ..SequenceState::default() }
    }

    /// The state of a sequence for another, until one of them goes on: neither may write to it.
    pub(super) fn fork_state(&mut self, sequence: SequenceId) -> Result<SequenceState, ModelError> {
        let state = &mut self.get_mut(sequence)?.state;
        let own = state.state.map(|(own, _)| own);
        let given_up = state.target.take_if(|target| Some(*target) == own);
        let fork = SequenceState { target: None, ..state.clone() };
        given_up.into_iter().for_each(|own| self.states.let_go(own));
        own.into_iter().for_each(|own| self.states.hold(own));
        Ok(fork)
    }

    pub(super) fn release_state(&mut self, state: SequenceState) {
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
        self.release_state(old);
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

    /// A state for a snapshot, where prefixes are kept and nothing has to give way for it but older snapshots.
    fn spare_state(&mut self) -> Option<StateId> {
        if self.prefixes.max_idle == 0 {
            return None;
        }
        while self.unused_blocks() < self.states.cost {
            if !self.states.forget_oldest() {
                return None;
            }
        }
        Some(self.states.take())
    }

    /// The step of the rows that were begun has been computed.
    pub(crate) fn step_done(&mut self) {
        for Pending { sequence, stored, rows, snapshot } in std::mem::take(&mut self.states.pending)
        {
            let Some(owner) = self.sequences.get_mut(&sequence) else {
                snapshot.into_iter().for_each(|taken| self.states.let_go(taken.state));
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
            snapshot.into_iter().for_each(|taken| self.states.let_go(taken.state));
        }
    }

    /// Keeps a snapshot at the end of its block; that before it gives way if it is near and of the same kind.
    fn keep_snapshot(&mut self, sequence: SequenceId, taken: Taken) {
        let Taken { state, position, is_prompt } = taken;
        let Some(owner) = self.sequences.get_mut(&sequence) else { return };
        let block = |position: usize| owner.blocks[position / self.block_positions - 1];
        let last = owner.state.last.replace((position, is_prompt));
        let kept = block(position);
        let is_near = |(before, was_prompt): &(usize, bool)| {
            *before < position && before / SPACING == position / SPACING && *was_prompt == is_prompt
        };
        let old = last.filter(is_near).map(|(before, _)| block(before));
        self.states.clock += 1;
        let used = self.states.clock;
        if let Some(old) = old.filter(|old| self.references[old.0 as usize] <= 2) {
            self.states.forget(old);
        }
        if let Some(before) = self.states.snapshots.insert(kept, Snapshot { state, used }) {
            self.states.let_go(before.state);
        }
    }
}
