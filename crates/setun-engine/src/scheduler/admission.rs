//! Admission of waiting sequences to the batch.

use std::time::Duration;

use setun_clock::Instant;

use super::{
    DraftModelRunner, Running, Scheduler,
    running::{places, preemption_victim},
};
use crate::{request_slots::tenant_share, sequence::Sequence, telemetry::WaitReason};

/// Waiting sequences that are passed over, as they cannot run now.
#[derive(Default)]
struct Passed {
    /// Their places in the queue: samples of one request have the same arrival.
    places: Vec<usize>,
    tenants: Vec<Option<u64>>,
}

impl Passed {
    fn has(&self, place: usize, sequence: &Sequence) -> bool {
        self.places.contains(&place) || self.tenants.contains(&sequence.tenant())
    }

    /// A sequence before some of them has left the queue.
    fn has_left(&mut self, left: usize) {
        self.places.iter_mut().filter(|place| **place > left).for_each(|place| *place -= 1);
    }
}

impl Scheduler {
    /// Time until the scheduler must act without a command.
    pub(super) fn alarm(&self, now: Instant) -> Option<Duration> {
        let running = self.running.iter().filter_map(|running| running.sequence.deadline()).min();
        let deadline = running.into_iter().chain(self.queue.deadline()).min();
        let deadline = deadline.map(|deadline| deadline.saturating_duration_since(now));
        let has_memory = self.model.target.memory().cache > 0;
        let monitor = self.kv.monitor.as_ref().filter(|_| has_memory);
        let monitor = monitor.map(|monitor| monitor.left(now));
        let alarm = deadline.into_iter().chain(self.gathering(now)).chain(monitor).min();
        alarm.map(|time| time.max(Duration::from_millis(1)))
    }

    /// How much longer an idle scheduler waits for more requests.
    fn gathering(&self, now: Instant) -> Option<Duration> {
        if !self.running.is_empty() {
            return None;
        }
        self.queue.gathering(self.kv.limits.wait, self.kv.limits.max_concurrent, now)
    }

    /// Whether nothing is under way.
    pub(super) fn is_idle(&self) -> bool {
        self.running.is_empty() && !self.queue.has_preempted()
    }

    /// Starts waiting sequences in order, as long as there is room for their tokens and one more. Those
    /// of a tenant that has its share are passed over.
    pub(super) fn admit(&mut self, now: Instant) {
        if self.running.is_empty() && self.queue.is_empty() && self.kv.is_refused_more() {
            // Nothing is lost, so it may grow again as far as it is allowed.
            self.kv.reset(self.kv.limits.blocks);
        }
        if self.is_idle() {
            self.model.draft.iter_mut().for_each(DraftModelRunner::reset);
        }
        if self.gathering(now).is_some() {
            self.queue.iter_mut().for_each(|sequence| sequence.wait(WaitReason::BatchWait));
            return;
        }
        let mut passed = Passed::default();
        while let Some(next) = self.next(&passed)
            && let Some(sequence) = self.queue.get(next)
        {
            let Some(reason) = self.wait_reason(sequence, now) else {
                let sequence = self.queue.remove(next);
                passed.has_left(next);
                self.start(sequence);
                continue;
            };
            if matches!(reason, WaitReason::BatchFull | WaitReason::CacheFull) {
                let (tenant, priority) = (sequence.tenant(), sequence.priority());
                let Some(victim) = preemption_victim(&self.running, |running| {
                    let other = &running.sequence;
                    !other.demands() || (other.tenant() == tenant && other.priority() < priority)
                }) else {
                    self.report_waits(next, &passed, reason);
                    return;
                };
                self.preempt(victim);
                passed = Passed::default();
            } else {
                match reason {
                    WaitReason::TenantShare => passed.tenants.push(sequence.tenant()),
                    _ => passed.places.push(next),
                }
                self.report_waits(next, &passed, reason);
            }
        }
    }

    /// The place of the next sequence that may start.
    fn next(&self, passed: &Passed) -> Option<usize> {
        let places = |tenant| places(&self.running, tenant);
        self.queue.next(|place, sequence| passed.has(place, sequence), places)
    }

    /// The sequence at this place waits. So do the others of its tenant that has its share; all others
    /// that are not passed over wait for it where there is no room.
    fn report_waits(&mut self, place: usize, passed: &Passed, reason: WaitReason) {
        let Some(tenant) = self.queue.get(place).map(Sequence::tenant) else { return };
        for (other, sequence) in self.queue.iter_mut().enumerate() {
            match reason {
                _ if other == place => sequence.wait(reason),
                WaitReason::TenantShare if sequence.tenant() == tenant => sequence.wait(reason),
                WaitReason::BatchFull | WaitReason::CacheFull if !passed.has(other, sequence) => {
                    sequence.wait(WaitReason::QueueOrder);
                }
                _ => {}
            }
        }
    }

    /// Why a sequence cannot run now, whatever waits before it. One that may wait no longer computes
    /// again what another does.
    fn wait_reason(&self, sequence: &Sequence, now: Instant) -> Option<WaitReason> {
        if !sequence.demands() {
            Some(WaitReason::StreamFull)
        } else if !sequence.is_overdue(now) && self.is_being_computed(sequence) {
            Some(WaitReason::SharedPrefix)
        } else {
            self.missing_room(sequence)
        }
    }

    /// Gives a sequence a slot in the cache, with what is there of its tokens.
    fn start(&mut self, mut sequence: Sequence) {
        let kv_slot = self.kv.pool.create_from(sequence.salt(), sequence.reusable());
        let cached = self.kv.pool.len(kv_slot).unwrap_or(0);
        let is_first = sequence.enter(cached);
        self.stats.record_admission(&sequence, is_first);
        let mut running = Running::new(sequence, kv_slot);
        // A slot that were not there would be refused in the next step.
        let _ = self.kv.truncate(&mut running);
        self.kv.fork_rows(&mut running);
        self.running.push(running);
    }

    /// Whether a prompt under way begins as this one does, further than what is in the cache.
    fn is_being_computed(&self, sequence: &Sequence) -> bool {
        if self.kv.limits.prefix_blocks == 0 {
            return false;
        }
        let (salt, tokens) = (sequence.salt(), sequence.reusable());
        let is_prompt = |running: &&Running| {
            let other = &running.sequence;
            other.pending().len() > 1 && other.demands() && other.salt() == salt
        };
        let prompts = self.running.iter().filter(is_prompt);
        let blocks = |other: &[u32]| {
            let alike = other.iter().zip(tokens).take_while(|(one, other)| one == other);
            // The last token is computed again, as its logits are requested.
            alike.count().min(tokens.len().saturating_sub(1)) / self.kv.pool.block_positions()
        };
        // A recurrent state is found where a prompt ends, not where two begin to differ.
        let is_prefix = |r: &&Running| {
            self.kv.pool.state_blocks() == 0 || tokens.starts_with(r.sequence.context())
        };
        let most = prompts.filter(is_prefix).map(|r| blocks(r.sequence.context())).max();
        most.is_some_and(|most| most > 0 && most > self.kv.pool.found(salt, tokens).0)
    }

    fn missing_room(&self, sequence: &Sequence) -> Option<WaitReason> {
        let running: usize = self.running.iter().map(|running| running.sequence.count()).sum();
        if running == 0 {
            return None; // a whole context fits
        }
        let own = places(&self.running, sequence.tenant());
        let share = tenant_share(self.kv.limits.max_concurrent);
        if sequence.tenant().is_some() && own > 0 && own + sequence.count() > share {
            return Some(WaitReason::TenantShare);
        }
        let (pool, tokens) = (&self.kv.pool, sequence.context());
        let (found, idle) = pool.found(sequence.salt(), sequence.reusable());
        let blocks = (tokens.len() + 1).div_ceil(pool.block_positions());
        // Samples share all but the last, the rows of a search what they have in common.
        let own = blocks - sequence.shared_positions() / pool.block_positions();
        let states = pool.state_blocks() * sequence.count();
        let blocks = blocks + (sequence.count() - 1) * own + states;
        let promised: usize = self.running.iter().map(|running| self.kv.promised(running)).sum();
        if running + sequence.count() > self.kv.limits.max_concurrent {
            Some(WaitReason::BatchFull)
        } else if blocks - found + idle + promised > pool.free_blocks() {
            Some(WaitReason::CacheFull)
        } else {
            None
        }
    }
}
