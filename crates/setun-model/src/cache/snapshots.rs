//! Snapshots of recurrent states at the ends of blocks.

use setun_ops::{BlockId, StateId};

use super::{
    PagedCache, Sequence,
    states::{SequenceState, Snapshot, Taken},
};
use crate::{batch::SequenceId, error::ModelError};

/// Positions of which the last snapshot is kept: within them a later one takes the place of that before.
const SPACING: usize = 1024;

impl PagedCache {
    /// Says that all positions which a sequence has reserved, whole blocks, are computed: its state is written to the
    /// state that is returned, which is a snapshot from then on. None where sequences have no states.
    ///
    /// # Errors
    ///
    /// If the sequence is not here.
    pub fn restore_state(&mut self, sequence: SequenceId) -> Result<Option<StateId>, ModelError> {
        if !self.states.are_used() {
            return Ok(None);
        }
        let Sequence { blocks, len, .. } = self.get(sequence)?;
        let (Some(&last), len) = (blocks.last(), *len) else { return Ok(None) };
        let Some(state) = self.get_mut(sequence)?.state.target.take() else { return Ok(None) };
        let owner = &mut self.get_mut(sequence)?.state;
        let before = owner.state.replace((state, len));
        owner.rows = len;
        if let Some((before, _)) = before {
            self.states.let_go(before);
        }
        self.states.hold(state);
        self.states.clock += 1;
        let used = self.states.clock;
        if let Some(old) = self.states.snapshots.insert(last, Snapshot { state, used }) {
            self.states.let_go(old.state);
        }
        Ok(Some(state))
    }

    /// The blocks of a known prefix that end at a snapshot, and the snapshot.
    pub(super) fn until_snapshot(&self, blocks: &mut Vec<BlockId>) -> Option<StateId> {
        if !self.states.are_used() {
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

    /// A state for a snapshot, where prefixes are kept and nothing has to give way for it but older snapshots.
    pub(super) fn spare_state(&mut self) -> Option<StateId> {
        if self.prefixes.max_idle == 0 {
            return None;
        }
        while self.unused_blocks() < self.states.cost || !self.has_state_memory(0) {
            if !self.states.forget_oldest() {
                return None;
            }
        }
        Some(self.states.take())
    }

    /// Keeps a snapshot at the end of its block; that before it gives way if it is near and of the same kind.
    pub(super) fn keep_snapshot(&mut self, sequence: SequenceId, taken: Taken) {
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
