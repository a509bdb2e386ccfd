//! Blocks of the cache for the rows of a step, and preemption where there are too few.

use setun_model::SequenceId;

use super::running::{last_preempted_first, preemption_victim};
use super::{Running, Scheduler};

impl Scheduler {
    /// Room for the planned rows of all sequences, or for this many steps of each. One that finds
    /// none ends.
    pub(super) fn reserve_all(&mut self, steps: usize) {
        let with_rows = last_preempted_first(&mut self.running, |running| running.rows > 0);
        let kv_slots: Vec<_> = with_rows.into_iter().map(|running| running.kv_slot).collect();
        for kv_slot in kv_slots {
            self.reserve(kv_slot, steps);
        }
    }

    /// Room for the rows of a sequence, or for this many steps. Others make room, or it does, or it waits for the
    /// next step, before which memory is given back.
    fn reserve(&mut self, kv_slot: SequenceId, steps: usize) {
        let is_it = |running: &Running| running.kv_slot == kv_slot;
        while let Some(index) = self.running.iter().position(is_it) {
            let running = &mut self.running[index];
            let positions = running.rows.max(steps).max(running.draft.len());
            let refused = match self.kv.extend(running, positions) {
                Ok(None) => return self.kv.mark_drafts(&self.running[index]),
                refused => refused,
            };
            if running.draft.len() > 1 {
                running.draft.clear(); // drafts never displace a sequence
                continue;
            }
            let error = match refused {
                Err(error) => error,
                Ok(lacking) => {
                    (running.rows, running.draft) = (0, <_>::default());
                    self.kv.lacking = self.kv.lacking.max(lacking);
                    return;
                }
            };
            match preemption_victim(&self.running, |_| true) {
                Some(victim) if self.running.len() > 1 => self.preempt(victim),
                _ => self.fail(index, error.into()),
            }
        }
    }

    /// Takes a sequence's slots away; it begins again from its tokens when there is room.
    pub(super) fn preempt(&mut self, index: usize) {
        let sequence = &self.running[index].sequence;
        self.stats.metrics.preemptions += 1;
        self.stats.metrics.preempted_tokens += sequence.cached() as u64;
        sequence.leave();
        self.requeue(index);
    }

    /// Puts a sequence back in the queue.
    pub(super) fn requeue(&mut self, index: usize) {
        let running = self.running.remove(index);
        self.kv.release(&running);
        self.queue.push(running.sequence);
    }
}
