//! Beam rows: the sequences of a search, which start, step and make room together.

use std::sync::Arc;

use setun_model::{BatchRow, ModelError, RequestedOutput, Row, SequenceId};

use super::{End, Running, Scheduler};
use crate::{beams::kv_slots, error::Error, event::FinishReason, sequence::Sequence};

impl Running {
    /// The places of all its rows.
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
        let output_needed =
            if is_last { RequestedOutput::Logits } else { RequestedOutput::Nothing };
        let row = move |(sequence, token)| BatchRow {
            token,
            position,
            sequence,
            output: output_needed.clone(),
        };
        self.kv_slots().zip(sequence.row_tokens()).map(row)
    }
}

impl Scheduler {
    /// Has a sequence wait for its turn, unless it is a search of more rows than ever run at once.
    pub(super) fn enqueue_if_fit(&mut self, sequence: Sequence) {
        let most = self.limits.streams;
        if sequence.is_search() && sequence.count() > most {
            let (found, expected) = (sequence.count().to_string(), format!("{most} or fewer"));
            let error = Error::BadOption { option: "beams", found, expected };
            sequence.fail(&Arc::new(error));
        } else {
            self.waiting.push(sequence);
        }
    }

    /// Gives the rows of a search places of their own, if all that they have in common is in the
    /// cache.
    pub(super) fn fork_rows(&mut self, index: usize) {
        let Running { sequence, kv_slot, beam_rows, .. } = &mut self.running[index];
        for _ in 0..sequence.forks() {
            // A place that were not there would be refused in the next step.
            beam_rows.extend(self.cache.fork(*kv_slot));
        }
    }

    /// Reserves this many positions for each row of a sequence, or for none.
    pub(super) fn extend(&mut self, index: usize, positions: usize) -> Result<(), ModelError> {
        let running = &self.running[index];
        for (row, kv_slot) in running.kv_slots().enumerate() {
            if let Err(error) = self.cache.extend(kv_slot, positions) {
                for kv_slot in running.kv_slots().take(row) {
                    self.cache.truncate(kv_slot, running.sequence.cached())?;
                }
                return Err(error);
            }
        }
        Ok(())
    }

    /// Gives a search the logits of its rows; how it ended, if so.
    pub(super) fn apply_beams<'a>(
        &mut self,
        index: usize,
        first: Row<'a>,
        rows: &mut impl Iterator<Item = Row<'a>>,
    ) -> Option<End> {
        let running = &mut self.running[index];
        let rows = std::iter::once(first).chain(rows.take(running.beam_rows.len()));
        let logits = rows.map(|row| match row {
            Row::Logits(logits) => logits,
            Row::Ranked(_) | Row::HiddenState(_) => &[], // which were not asked for
        });
        let parents = match running.sequence.apply_beam_logits(&logits.collect::<Vec<_>>()) {
            Ok(parents) if parents.is_empty() => return Some(Ok((FinishReason::Stop, None))),
            Ok(parents) => parents,
            Err(error) => return Some(Err(error)),
        };
        let mut kv_slots: Vec<_> = running.kv_slots().collect();
        let constraint = kv_slots::follow(&mut self.cache, &mut kv_slots, &parents);
        running.kv_slot = kv_slots.remove(0);
        running.beam_rows = kv_slots;
        constraint.err().map(|error| Err(error.into()))
    }

    /// Frees all places of a sequence.
    pub(super) fn release(&mut self, running: &Running) {
        for kv_slot in running.kv_slots() {
            self.cache.remove(kv_slot);
        }
    }
}
