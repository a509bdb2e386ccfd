//! Admission to the batch, preemption, and the ends of sequences.

use std::{cmp::Reverse, time::Duration};

use web_time::Instant;

use super::{DraftModelRunner, Running, Scheduler};
use crate::{
    engine_info::EngineInfo, error::Error, event::FinishReason, metrics::EngineMetrics,
    sequence::Sequence,
};

impl Scheduler {
    /// Takes out sequences whose consumers have left or cancelled, and those whose time is over.
    pub(super) fn drop_ended(&mut self) {
        let now = Instant::now();
        let Self { waiting, report, metrics, .. } = self;
        waiting
            .end_interrupted(now, |sequence| without_interrupted(sequence, now, report, metrics));
        for index in (0..self.running.len()).rev() {
            if !self.running[index].sequence.is_interrupted(now) {
                continue;
            }
            let Running { sequence, kv_slot, beam_rows, .. } = self.running.remove(index);
            let left = without_interrupted(sequence, now, &self.report, &mut self.metrics);
            for beam_row in beam_rows {
                self.cache.remove(beam_row); // its search has ended
            }
            match left {
                Some(sequence) => self.running.insert(index, Running::new(sequence, kv_slot)),
                None => self.cache.remove(kv_slot),
            }
        }
    }

    /// Time until something is to be done though nobody says so.
    pub(super) fn alarm(&self) -> Option<Duration> {
        let now = Instant::now();
        let running = self.running.iter().filter_map(|running| running.sequence.deadline()).min();
        let deadline = running.into_iter().chain(self.waiting.deadline()).min();
        let deadline = deadline.map(|deadline| deadline.saturating_duration_since(now));
        let has_memory = self.model.memory().cache > 0;
        let monitor = self.monitor.as_ref().filter(|_| has_memory).map(|monitor| monitor.left(now));
        let alarm = deadline.into_iter().chain(self.gathering(now)).chain(monitor).min();
        alarm.map(|time| time.max(Duration::from_millis(1)))
    }

    /// How much longer an idle scheduler waits for more requests.
    fn gathering(&self, now: Instant) -> Option<Duration> {
        if !self.running.is_empty() {
            return None;
        }
        self.waiting.gathering(self.limits.wait, self.limits.streams, now)
    }

    /// Whether nothing is under way.
    pub(super) fn is_idle(&self) -> bool {
        self.running.is_empty() && !self.waiting.has_preempted()
    }

    /// Starts waiting sequences in order, as long as there is room for their tokens and one more.
    pub(super) fn admit(&mut self) {
        if self.running.is_empty() && self.waiting.is_empty() {
            self.try_all_memory();
        }
        if self.is_idle() {
            self.draft_runner.iter_mut().for_each(DraftModelRunner::reset);
        }
        if self.gathering(Instant::now()).is_some() {
            return;
        }
        let mut next = 0;
        while let Some(sequence) = self.waiting.get(next) {
            if !sequence.demands() {
                next += 1; // it was preempted, and nobody reads it yet
            } else if self.is_being_computed(sequence) {
                next += 1; // what others compute now is not computed twice
            } else if self.has_room_for(sequence) {
                let mut sequence = self.waiting.remove(next);
                let kv_slot = self.cache.create_from(sequence.reusable());
                let cached = self.cache.len(kv_slot).unwrap_or(0);
                let cached = self.record_admission(&mut sequence, cached);
                // A place that were not there would be refused in the next step.
                let _ = self.cache.truncate(kv_slot, cached);
                self.running.push(Running::new(sequence, kv_slot));
                self.fork_rows(self.running.len() - 1);
            } else if let Some(victim) = self.preemption_victim(|running| {
                !running.sequence.demands() || running.sequence.priority() < sequence.priority()
            }) {
                self.preempt(victim);
                next = 0;
            } else {
                return;
            }
        }
    }

    /// Whether a prompt under way begins as this one does, further than what is in the cache.
    fn is_being_computed(&self, sequence: &Sequence) -> bool {
        if self.limits.prefix_blocks == 0 {
            return false;
        }
        let tokens = sequence.reusable();
        let mut prompts = self
            .running
            .iter()
            .filter(|running| running.sequence.pending().len() > 1 && running.sequence.demands());
        let blocks = |other: &[u32]| {
            let alike = other.iter().zip(tokens).take_while(|(one, other)| one == other);
            // The last token is computed again, as its logits are wanted.
            alike.count().min(tokens.len().saturating_sub(1)) / self.cache.block_positions()
        };
        let most = prompts.by_ref().map(|r| blocks(r.sequence.context())).max();
        most.is_some_and(|most| most > 0 && most > self.cache.found(tokens).0)
    }

    fn has_room_for(&self, sequence: &Sequence) -> bool {
        let running: usize = self.running.iter().map(|running| running.sequence.count()).sum();
        if running == 0 {
            return true; // a whole context fits
        }
        let tokens = sequence.context();
        let (found, idle) = self.cache.found(sequence.reusable());
        let blocks = (tokens.len() + 1).div_ceil(self.cache.block_positions());
        // Siblings share all but the last, the rows of a search what they have in common.
        let own = blocks - sequence.shared_positions() / self.cache.block_positions();
        let blocks = blocks + (sequence.count() - 1) * own;
        let promised: usize = self.running.iter().map(|running| self.promised(running)).sum();
        running + sequence.count() <= self.limits.streams
            && blocks - found + idle + promised <= self.cache.free_blocks()
    }

    /// Blocks that a sequence is sure to take still: for its tokens and one more.
    fn promised(&self, running: &Running) -> usize {
        let positions = running.sequence.pending().len() + 1;
        let needed = |kv_slot| self.cache.needed(kv_slot, positions).unwrap_or(0);
        let sum: usize = running.kv_slots().map(needed).sum();
        sum + running.sequence.count().saturating_sub(running.width())
    }

    /// Of the running sequences that may be taken, the one that is preempted first.
    pub(super) fn preemption_victim(&self, may: impl Fn(&Running) -> bool) -> Option<usize> {
        let rank = |running: &Running| {
            let sequence = &running.sequence;
            (sequence.demands(), sequence.priority(), Reverse(sequence.arrival))
        };
        let running = self.running.iter().enumerate().filter(|(_, running)| may(running));
        running.min_by_key(|(_, running)| rank(running)).map(|(index, _)| index)
    }

    /// Takes a sequence's place away; it begins again from its tokens when there is room.
    pub(super) fn preempt(&mut self, index: usize) {
        self.metrics.preemptions += 1;
        let sequence = &self.running[index].sequence;
        self.metrics.preempted_tokens += sequence.cached() as u64;
        sequence.leave();
        self.requeue(index);
    }

    /// Puts a sequence back in line.
    pub(super) fn requeue(&mut self, index: usize) {
        let running = self.running.remove(index);
        self.release(&running);
        self.waiting.push(running.sequence);
    }

    /// Has the cache grow as far as it may again, after memory was refused to it.
    fn try_all_memory(&mut self) {
        if self.cache.max_blocks() < self.limits.blocks {
            self.cache = self.limits.cache(&*self.model);
        }
    }

    pub(super) fn end(&mut self, index: usize, reason: FinishReason, stop: Option<String>) {
        self.running[index].sequence.finish(reason, stop, &self.report);
        self.metrics.add_end(reason);
        self.forget(index);
    }

    pub(super) fn fail(&mut self, index: usize, error: Error) {
        let error = std::sync::Arc::new(error);
        let sequence = &mut self.running[index].sequence;
        self.metrics.failed += sequence.count() as u64;
        sequence.take_samples().iter().for_each(|sample| sample.fail(&error));
        sequence.fail(&error);
        self.forget(index);
    }

    fn forget(&mut self, index: usize) {
        let running = self.running.remove(index);
        self.release(&running);
    }

    /// A step failed, so the contents of the cache at its positions are not known. All
    /// generations under way end with the error; new ones may start.
    pub(super) fn fail_all(&mut self, error: Error) {
        let error = std::sync::Arc::new(error);
        while let Some(mut running) = self.running.pop() {
            self.metrics.failed += running.sequence.count() as u64;
            running.sequence.take_samples().iter().for_each(|sample| sample.fail(&error));
            running.sequence.fail(&error);
            self.release(&running);
        }
        self.cache.forget_idle(0);
    }
}

impl Running {
    pub(super) fn new(sequence: Sequence, kv_slot: setun_model::SequenceId) -> Self {
        let (beam_rows, draft) = (vec![], vec![]);
        Self { sequence, kv_slot, beam_rows, demands: false, rows: 0, reported: 0, draft }
    }
}

/// Ends a sequence that is interrupted, and those of its siblings that are; gives back what
/// is left of them.
fn without_interrupted(
    mut sequence: Sequence,
    now: Instant,
    report: &EngineInfo,
    metrics: &mut EngineMetrics,
) -> Option<Sequence> {
    let mut left = sequence.take_samples();
    let echo = sequence.take_prompt_logprobs();
    left.insert(0, sequence);
    left.retain_mut(|sequence| match sequence.interruption(now) {
        Some(reason) => {
            sequence.finish(reason, None, report);
            metrics.add_end(reason);
            false
        }
        None => true,
    });
    let mut left = left.into_iter();
    let mut first = left.next()?;
    first.set_samples(left.collect());
    first.set_prompt_logprobs(echo);
    Some(first)
}
