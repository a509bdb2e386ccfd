//! Recurrent states from the beginning of a step to its end.

use setun_ops::{numeric::to_u32, recurrent::StateRows};

use super::{
    PagedCache, Sequence,
    states::{Pending, Taken},
};
use crate::{batch::SequenceId, error::ModelError};

impl PagedCache {
    /// What a step does with the state of a sequence whose rows have these positions. It counts as done with
    /// [`step_done`](Self::step_done).
    ///
    /// # Errors
    ///
    /// If the sequence is not here, or the rows do not follow those before.
    pub(crate) fn begin_rows(
        &mut self,
        sequence: SequenceId,
        (first, end): (usize, usize),
    ) -> Result<StateRows, ModelError> {
        if !self.states.are_used() {
            return Ok(StateRows::default());
        }
        self.provide_state(sequence, 0)?;
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
        if !self.states.are_used() {
            return;
        }
        self.states.is_running = false;
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

    /// The step of the rows that were begun runs from now on: until it is done, what it writes to is undefined.
    pub(crate) fn step_runs(&mut self) {
        self.states.is_running = true;
    }

    /// The step of the rows that were begun is not done. Where it has run, sequences whose states it wrote
    /// to go back to their last snapshots.
    pub(crate) fn step_failed(&mut self) {
        if !self.states.are_used() {
            return;
        }
        let has_run = std::mem::take(&mut self.states.is_running);
        for Pending { sequence, stored, snapshot, .. } in std::mem::take(&mut self.states.pending) {
            if let Some(taken) = snapshot {
                self.states.let_go(taken.state);
            }
            let own = self.sequences.get(&sequence).and_then(|owner| owner.state.state);
            if let Some((own, base)) = own.filter(|(own, _)| has_run && *own == stored.0)
                && let Ok(len) = self.go_to_snapshot(sequence, base)
            {
                debug_assert_eq!(own, stored.0, "its own");
                self.cut(sequence, len);
            }
        }
    }
}
