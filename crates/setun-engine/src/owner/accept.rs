//! What becomes of the rows that a step has computed.

use setun_model::{RequestedOutput, Row};

use super::{End, Owner, Running};
use crate::{error::Error, event::FinishReason, sequence::Next};

impl Owner {
    /// Hands each sequence whose last row is done its logits.
    pub(super) fn accept(&mut self) {
        let outputs = std::mem::take(&mut self.outputs);
        let mut rows = outputs.rows();
        let mut ended = vec![];
        for index in 0..self.running.len() {
            let told = self.tell(index, &mut rows);
            if !self.advance(index) {
                ended.extend(told.err().map(|error| (index, Err(error))));
                continue;
            }
            let told = told.and_then(|()| self.running[index].sequence.tell_prompt());
            if let Some(end) = self.ends_with_prompt(index, told) {
                ended.push((index, end));
                continue;
            }
            let Some(row) = rows.next() else { break };
            let guessed = std::mem::take(&mut self.running[index].guessed);
            if guessed.len() > 1 {
                let end = self.settle_guessed(index, row, &guessed[1..], &mut rows);
                ended.extend(end.map(|end| (index, end)));
                continue;
            }
            if self.running[index].sequence.is_search() {
                ended.extend(self.settle_search(index, row, &mut rows).map(|end| (index, end)));
                continue;
            }
            let first_twin = self.running.len();
            self.fork_siblings(index);
            for index in std::iter::once(index).chain(first_twin..self.running.len()) {
                ended.extend(self.settle(index, row).map(|end| (index, end)));
            }
        }
        drop(rows);
        self.outputs = outputs; // its memory serves the next step
        self.end_all(ended);
    }

    /// Gives a sequence the rows that tell of its prompt.
    fn tell<'a>(
        &mut self,
        index: usize,
        rows: &mut impl Iterator<Item = Row<'a>>,
    ) -> Result<(), Error> {
        let Running { sequence, told, .. } = &mut self.running[index];
        rows.take(*told).try_for_each(|row| sequence.tell(row))
    }

    /// How a sequence ends whose prompt has run, if that is before it chooses a token.
    fn ends_with_prompt(&self, index: usize, told: Result<(), Error>) -> Option<End> {
        match told {
            Err(error) => Some(Err(error)),
            Ok(()) if self.running[index].sequence.remaining() == 0 => {
                Some(Ok((FinishReason::Length, None)))
            }
            Ok(()) => None,
        }
    }

    /// The rows of a sequence have entered the cache. Whether they were the last it had.
    pub(super) fn advance(&mut self, index: usize) -> bool {
        let Running { sequence, rows, .. } = &mut self.running[index];
        if *rows == 0 {
            return false;
        }
        sequence.advance(*rows);
        self.note(index);
        self.fork_rows(index);
        self.running[index].sequence.pending().is_empty()
    }

    /// What is in the cache now may be found by others.
    pub(super) fn note(&mut self, index: usize) {
        let Running { sequence, place, .. } = &self.running[index];
        let tokens = &sequence.context()[..sequence.cached()];
        // A place that were not there would be refused in the next step.
        let _ = self.cache.record_prefix(*place, tokens);
    }

    /// Those that waited for the prompt of this one go on from where it is.
    fn fork_siblings(&mut self, index: usize) {
        let Running { sequence, place, .. } = &mut self.running[index];
        let place = *place;
        for sibling in sequence.take_siblings() {
            match self.cache.fork(place) {
                Ok(place) => self.running.push(Running::new(sibling, place)),
                Err(error) => {
                    sibling.fail(&std::sync::Arc::new(error.into()));
                    self.metrics.failed += 1;
                }
            }
        }
    }

    /// Gives a sequence the logits of its last token, and of the guesses after it as long as they
    /// are right; how it ended, if so. All of its rows are taken.
    fn settle_guessed<'a>(
        &mut self,
        index: usize,
        first: Row<'a>,
        guesses: &[(u32, RequestedOutput)],
        rows: &mut impl Iterator<Item = Row<'a>>,
    ) -> Option<End> {
        let guessed: Vec<_> = rows.take(guesses.len()).collect();
        let known = self.running[index].sequence.context().len();
        let (mut end, mut right) = (self.settle(index, first), 0);
        for (row, (guess, _)) in guessed.into_iter().zip(guesses) {
            let sequence = &mut self.running[index].sequence;
            // Less than one more token where the row before has to run again.
            if end.is_some() || sequence.context()[known..].get(right) != Some(guess) {
                break;
            }
            sequence.advance(1);
            right += 1;
            end = self.settle(index, row);
        }
        let Running { sequence, place, .. } = &mut self.running[index];
        sequence.note_guesses(guesses.len(), right);
        self.metrics.add_guesses(guesses.len(), right);
        let kept = self.cache.truncate(*place, sequence.cached());
        self.note(index);
        end.or_else(|| kept.err().map(|error| Err(error.into())))
    }

    /// Has sequences whose context is full begin again from what they keep of it.
    pub(super) fn shorten_full(&mut self) {
        for index in (0..self.running.len()).rev() {
            match self.running[index].sequence.shorten() {
                Ok(false) => {}
                Ok(true) => self.line_up_again(index),
                Err(error) => self.fail(index, error),
            }
        }
    }

    /// Gives a sequence its logits; how it ended, if so.
    fn settle(&mut self, index: usize, row: Row<'_>) -> Option<End> {
        let next = self.running[index].sequence.accept(row);
        self.note_token(index);
        let Running { sequence, place, .. } = &mut self.running[index];
        match next {
            Ok(Next::Continue) => None,
            Ok(Next::Again) => {
                let kept = self.cache.truncate(*place, sequence.cached());
                kept.err().map(|error| Err(error.into()))
            }
            Ok(Next::Finished(reason, stop)) => Some(Ok((reason, stop))),
            Err(error) => Some(Err(error)),
        }
    }

    /// Ends those sequences.
    pub(super) fn end_all(&mut self, mut ended: Vec<(usize, End)>) {
        ended.sort_unstable_by_key(|&(index, _)| std::cmp::Reverse(index));
        for (index, end) in ended {
            match end {
                Ok((reason, stop)) => self.end(index, reason, stop),
                Err(error) => self.fail(index, error),
            }
        }
    }
}
