//! Sequences of the running batch, with their KV slots and rows of the step under way.

use std::cmp::Reverse;

use setun_model::{BatchRow, RequestedOutput, SequenceId};

use crate::sequence::Sequence;

/// A sequence with a slot in the KV cache.
pub(super) struct Running {
    pub(super) sequence: Sequence,
    pub(super) kv_slot: SequenceId,
    pub(super) beam_rows: Vec<SequenceId>, // of the other rows of a search
    pub(super) demands: bool,              // another token, for the step under way
    pub(super) rows: usize,                // of the step under way
    pub(super) wanted: usize,              // of these and drafted ones, rows that have outputs
    pub(super) reported: usize,            // of those, rows with prompt log-probabilities
    pub(super) draft: Vec<(u32, RequestedOutput)>, // the last of these rows and drafted tokens; or empty
}

impl Running {
    pub(super) fn new(sequence: Sequence, kv_slot: SequenceId) -> Self {
        let (beam_rows, draft) = (vec![], vec![]);
        Self {
            sequence,
            kv_slot,
            beam_rows,
            demands: false,
            rows: 0,
            wanted: 0,
            reported: 0,
            draft,
        }
    }

    /// Whether the step under way has rows of this one's prompt.
    pub(super) fn is_prefill(&self) -> bool {
        self.rows > 0 && self.sequence.generated() == 0
    }

    /// Whether it is to get another token from its last one. The rows of a search that was
    /// preempted come back to that token by token.
    pub(super) fn decodes(&self) -> bool {
        self.demands && (self.sequence.pending().len() == 1 || !self.beam_rows.is_empty())
    }

    /// Whether tokens are drafted for the step under way.
    pub(super) fn may_speculate(&self) -> bool {
        self.rows == 1 && self.decodes() && self.sequence.speculates()
    }

    /// Later for those that are preempted earlier.
    pub(super) fn preemption_order(&self) -> (Reverse<i32>, u64) {
        (Reverse(self.sequence.standing()), self.sequence.arrival)
    }

    /// The KV slots of all its rows.
    pub(super) fn kv_slots(&self) -> impl Iterator<Item = SequenceId> {
        std::iter::once(self.kv_slot).chain(self.beam_rows.iter().copied())
    }

    /// Rows of a step for each of its positions.
    pub(super) fn width(&self) -> usize {
        1 + self.beam_rows.len()
    }

    /// The rows of a search that has several, one of each.
    pub(super) fn beam_batch_rows(&self) -> impl Iterator<Item = BatchRow> {
        let Self { sequence, .. } = self;
        let (position, is_last) = (sequence.cached(), sequence.pending().len() == 1);
        let output = if is_last { RequestedOutput::Logits } else { RequestedOutput::Nothing };
        let row =
            move |(sequence, token)| BatchRow { token, position, sequence, output: output.clone() };
        self.kv_slots().zip(sequence.row_tokens()).map(row)
    }
}

/// Places in the batch that a tenant has.
pub(super) fn places(running: &[Running], tenant: Option<u64>) -> usize {
    let own = running.iter().filter(|running| running.sequence.tenant() == tenant);
    own.map(|running| running.sequence.count()).sum()
}

/// The sequence that is preempted first. With several tenants it is one of the tenant with the most
/// places.
pub(super) fn preemption_victim(
    running: &[Running],
    may: impl Fn(&Running) -> bool,
) -> Option<usize> {
    let rank = |one: &Running| {
        let sequence = &one.sequence;
        let places = places(running, sequence.tenant());
        (sequence.demands(), Reverse(places), sequence.standing(), Reverse(sequence.arrival))
    };
    let preemptible = running.iter().enumerate().filter(|(_, running)| may(running));
    preemptible.min_by_key(|(_, running)| rank(running)).map(|(index, _)| index)
}

/// Those of these sequences that are included, the one that is preempted last first.
pub(super) fn last_preempted_first(
    running: &mut [Running],
    is_included: fn(&Running) -> bool,
) -> Vec<&mut Running> {
    let mut chosen: Vec<_> = running.iter_mut().filter(|running| is_included(running)).collect();
    chosen.sort_by_key(|running| running.preemption_order());
    chosen
}
