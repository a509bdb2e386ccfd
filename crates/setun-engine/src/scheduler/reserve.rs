//! Blocks of the cache for the rows of a step, with preemption where there are too few.

use setun_model::SequenceId;

use super::{Running, Scheduler};

impl Scheduler {
    /// Room for the planned rows of all sequences, or for this many steps of each. Who finds none
    /// ends.
    pub(super) fn reserve_all(&mut self, steps: usize) {
        for kv_slot in self.last_preempted_first() {
            self.reserve(kv_slot, steps);
        }
    }

    /// Those that have rows, the one that is preempted last first.
    fn last_preempted_first(&self) -> Vec<SequenceId> {
        let mut strongest: Vec<_> = self.running.iter().filter(|r| r.rows > 0).collect();
        strongest.sort_by_key(|running| running.preemption_order());
        strongest.into_iter().map(|running| running.kv_slot).collect()
    }

    /// Room for the rows of a sequence, or for this many steps. Others make room, or it does.
    fn reserve(&mut self, kv_slot: SequenceId, steps: usize) {
        let is_it = |running: &Running| running.kv_slot == kv_slot;
        while let Some(index) = self.running.iter().position(is_it) {
            let Running { rows, draft, .. } = &self.running[index];
            let positions = (*rows).max(steps).max(draft.len());
            let Err(error) = self.extend(index, positions) else { return };
            let draft = &mut self.running[index].draft;
            if draft.len() > 1 {
                draft.clear(); // nobody has to give way to guesses
                continue;
            }
            match self.preemption_victim(|_| true) {
                Some(victim) if self.running.len() > 1 => self.preempt(victim),
                _ => self.fail(index, error.into()),
            }
        }
    }
}
