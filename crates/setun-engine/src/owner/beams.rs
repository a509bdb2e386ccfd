//! Searches: sequences of several rows, which start, step and make room together.

use std::sync::Arc;

use setun_model::{BatchRow, ModelError, RequestedOutput, Row, SequenceId};

use super::{End, Owner, Running};
use crate::{beams::places, error::Error, event::FinishReason, sequence::Sequence};

impl Running {
    /// The places of all its rows.
    pub(super) fn places(&self) -> impl Iterator<Item = SequenceId> {
        std::iter::once(self.place).chain(self.twins.iter().copied())
    }

    /// Rows of a step for each of its positions.
    pub(super) fn width(&self) -> usize {
        1 + self.twins.len()
    }

    /// The rows of a search that has several, one of each.
    pub(super) fn twin_rows(&self) -> impl Iterator<Item = BatchRow> {
        let Self { sequence, .. } = self;
        let (position, is_last) = (sequence.cached(), sequence.pending().len() == 1);
        let wants = if is_last { RequestedOutput::Logits } else { RequestedOutput::Nothing };
        let row =
            move |(sequence, token)| BatchRow { token, position, sequence, output: wants.clone() };
        self.places().zip(sequence.row_tokens()).map(row)
    }
}

impl Owner {
    /// Has a sequence wait for its turn, unless it is a search of more rows than ever run at once.
    pub(super) fn line_up_if_fit(&mut self, sequence: Sequence) {
        let most = self.limits.streams;
        if sequence.is_search() && sequence.count() > most {
            let (found, expected) = (sequence.count().to_string(), format!("{most} or fewer"));
            let error = Error::BadOption { option: "beams", found, expected };
            sequence.fail(&Arc::new(error));
        } else {
            self.line_up(sequence);
        }
    }

    /// Gives the rows of a search places of their own, if all that they have in common is in the
    /// cache.
    pub(super) fn fork_rows(&mut self, index: usize) {
        let Running { sequence, place, twins, .. } = &mut self.running[index];
        for _ in 0..sequence.forks() {
            // A place that were not there would be refused in the next step.
            twins.extend(self.cache.fork(*place));
        }
    }

    /// Reserves so many positions for each row of a sequence, or for none.
    pub(super) fn extend(&mut self, index: usize, positions: usize) -> Result<(), ModelError> {
        let running = &self.running[index];
        for (row, place) in running.places().enumerate() {
            if let Err(error) = self.cache.extend(place, positions) {
                for place in running.places().take(row) {
                    self.cache.truncate(place, running.sequence.cached())?;
                }
                return Err(error);
            }
        }
        Ok(())
    }

    /// Gives a search the logits of its rows; how it ended, if so.
    pub(super) fn settle_search<'a>(
        &mut self,
        index: usize,
        first: Row<'a>,
        rows: &mut impl Iterator<Item = Row<'a>>,
    ) -> Option<End> {
        let running = &mut self.running[index];
        let rows = std::iter::once(first).chain(rows.take(running.twins.len()));
        let logits = rows.map(|row| match row {
            Row::Logits(logits) => logits,
            Row::Ranked(_) | Row::HiddenState(_) => &[], // which were not asked for
        });
        let parents = match running.sequence.accept_rows(&logits.collect::<Vec<_>>()) {
            Ok(parents) if parents.is_empty() => return Some(Ok((FinishReason::Stop, None))),
            Ok(parents) => parents,
            Err(error) => return Some(Err(error)),
        };
        let mut places: Vec<_> = running.places().collect();
        let followed = places::follow(&mut self.cache, &mut places, &parents);
        running.place = places.remove(0);
        running.twins = places;
        followed.err().map(|error| Err(error.into()))
    }

    /// Frees all places of a sequence.
    pub(super) fn release(&mut self, running: &Running) {
        for place in running.places() {
            self.cache.remove(place);
        }
    }
}
