//! Ends of sequences: finished, failed, cancelled or timed out.

use std::{cmp::Reverse, sync::Arc};

use setun_clock::Instant;

use super::{Running, Scheduler, apply_outputs::End, stats::Stats};
use crate::{engine_info::EngineInfo, error::Error, sequence::Sequence};

impl Scheduler {
    /// Takes out sequences whose consumers have left or cancelled, and those whose time is over.
    pub(super) fn drop_ended(&mut self) {
        let now = self.stats.clock.now();
        let (info, stats) = (&self.model.info, &mut self.stats);
        self.queue.end_interrupted(now, |sequence| without_interrupted(sequence, now, info, stats));
        for index in (0..self.running.len()).rev() {
            if !self.running[index].sequence.is_interrupted(now) {
                continue;
            }
            let Running { sequence, kv_slot, beam_rows, .. } = self.running.remove(index);
            for beam_row in beam_rows {
                self.kv.pool.remove(beam_row); // its search has ended
            }
            match without_interrupted(sequence, now, info, stats) {
                Some(sequence) => self.running.insert(index, Running::new(sequence, kv_slot)),
                None => self.kv.pool.remove(kv_slot),
            }
        }
    }

    /// Ends sequences that have waited too long for their first place in the batch. Those that could
    /// start have done so before.
    pub(super) fn fail_overdue(&mut self, now: Instant) {
        let mut overdue = self.queue.take_overdue(now);
        if overdue.is_empty() {
            return;
        }
        self.stats.metrics.failed += overdue.iter().map(Sequence::count).sum::<usize>() as u64;
        self.publish();
        overdue.iter_mut().for_each(Sequence::fail_in_queue);
    }

    /// Has sequences whose context is full begin again from what they keep of it.
    pub(super) fn shorten_full(&mut self) {
        for index in (0..self.running.len()).rev() {
            match self.running[index].sequence.shorten() {
                Ok(false) => {}
                Ok(true) => self.requeue(index),
                Err(error) => self.fail(index, error),
            }
        }
    }

    /// Ends these sequences. Whoever sees the end of one finds it counted.
    pub(super) fn end_all(&mut self, mut ended: Vec<(usize, End)>) {
        ended.sort_unstable_by_key(|&(index, _)| Reverse(index));
        let mut finished = vec![];
        for (index, end) in ended {
            match end {
                Ok((reason, stop)) => {
                    let running = self.remove(index);
                    self.stats.record_end(reason, &running.sequence);
                    finished.push((running.sequence, reason, stop));
                }
                Err(error) => self.fail(index, error),
            }
        }
        if !finished.is_empty() {
            self.publish();
        }
        for (mut sequence, reason, stop) in finished {
            sequence.finish(reason, stop, &self.model.info);
        }
    }

    pub(super) fn fail(&mut self, index: usize, error: Error) {
        self.fail_with(index, &Arc::new(error));
    }

    /// A step failed, so the contents of the cache at its positions are not known. All
    /// generations under way end with the error; new ones may start.
    pub(super) fn fail_all(&mut self, error: Error) {
        let error = Arc::new(error);
        for index in (0..self.running.len()).rev() {
            self.fail_with(index, &error);
        }
        self.kv.pool.forget_idle(0);
    }

    fn fail_with(&mut self, index: usize, error: &Arc<Error>) {
        let mut sequence = self.remove(index).sequence;
        self.stats.metrics.failed += sequence.count() as u64;
        self.publish();
        sequence.fail_all(error);
    }

    fn remove(&mut self, index: usize) -> Running {
        let running = self.running.remove(index);
        self.kv.release(&running);
        running
    }
}

/// Ends a sequence that is interrupted, and those of its samples that are; gives back what
/// is left of them.
fn without_interrupted(
    mut sequence: Sequence,
    now: Instant,
    info: &EngineInfo,
    stats: &mut Stats,
) -> Option<Sequence> {
    let mut left = sequence.take_samples();
    let prompt_logprobs = sequence.take_prompt_logprobs();
    left.insert(0, sequence);
    left.retain_mut(|sequence| match sequence.interruption(now) {
        Some(reason) => {
            stats.record_end(reason, sequence);
            sequence.finish(reason, None, info);
            false
        }
        None => true,
    });
    let mut left = left.into_iter();
    let mut first = left.next()?;
    first.set_samples(left.collect());
    first.set_prompt_logprobs(prompt_logprobs);
    Some(first)
}
