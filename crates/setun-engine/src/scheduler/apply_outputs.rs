//! Outputs of a step, handed to the sequences that they belong to.

use setun_model::{RequestedOutput, Row};

use super::{End, Running, Scheduler};
use crate::{error::Error, event::FinishReason, sequence::Next};

impl Scheduler {
    /// Hands each sequence whose last row is done its logits.
    pub(super) fn apply_outputs(&mut self) {
        let outputs = std::mem::take(&mut self.outputs);
        let mut rows = outputs.rows();
        let mut ended = vec![];
        for index in 0..self.running.len() {
            let reported = self.apply_prompt_rows(index, &mut rows);
            if !self.commit_rows(index) {
                ended.extend(reported.err().map(|error| (index, Err(error))));
                continue;
            }
            let reported = reported.and_then(|()| self.running[index].sequence.report_prompt());
            if let Some(end) = self.ends_with_prompt(index, reported) {
                ended.push((index, end));
                continue;
            }
            let Some(row) = rows.next() else { break };
            let draft = std::mem::take(&mut self.running[index].draft);
            if draft.len() > 1 {
                let end = self.apply_draft(index, row, &draft[1..], &mut rows);
                ended.extend(end.map(|end| (index, end)));
                continue;
            }
            if self.running[index].sequence.is_search() {
                ended.extend(self.apply_beams(index, row, &mut rows).map(|end| (index, end)));
                continue;
            }
            let first_twin = self.running.len();
            self.fork_samples(index);
            for index in std::iter::once(index).chain(first_twin..self.running.len()) {
                ended.extend(self.apply_token(index, row).map(|end| (index, end)));
            }
        }
        drop(rows);
        self.outputs = outputs; // its memory serves the next step
        self.end_all(ended);
    }

    /// Gives a sequence the rows that tell of its prompt.
    fn apply_prompt_rows<'a>(
        &mut self,
        index: usize,
        rows: &mut impl Iterator<Item = Row<'a>>,
    ) -> Result<(), Error> {
        let Running { sequence, reported, .. } = &mut self.running[index];
        rows.take(*reported).try_for_each(|row| sequence.apply_prompt_row(row))
    }

    /// How a sequence ends whose prompt has run, if that is before it chooses a token.
    fn ends_with_prompt(&self, index: usize, reported: Result<(), Error>) -> Option<End> {
        match reported {
            Err(error) => Some(Err(error)),
            Ok(()) if self.running[index].sequence.remaining() == 0 => {
                Some(Ok((FinishReason::Length, None)))
            }
            Ok(()) => None,
        }
    }

    /// The rows of a sequence have entered the cache. Whether they were the last it had.
    pub(super) fn commit_rows(&mut self, index: usize) -> bool {
        let Running { sequence, rows, .. } = &mut self.running[index];
        if *rows == 0 {
            return false;
        }
        sequence.commit_rows(*rows);
        self.register_prefix(index);
        self.fork_rows(index);
        self.running[index].sequence.pending().is_empty()
    }

    /// What is in the cache now may be found by others.
    pub(super) fn register_prefix(&mut self, index: usize) {
        let Running { sequence, kv_slot, .. } = &self.running[index];
        let tokens = &sequence.context()[..sequence.cached()];
        // A place that were not there would be refused in the next step.
        let _ = self.cache.record_prefix(*kv_slot, tokens);
    }

    /// Those that waited for the prompt of this one go on from where it is.
    fn fork_samples(&mut self, index: usize) {
        let Running { sequence, kv_slot, .. } = &mut self.running[index];
        let kv_slot = *kv_slot;
        for sample in sequence.take_samples() {
            match self.cache.fork(kv_slot) {
                Ok(kv_slot) => self.running.push(Running::new(sample, kv_slot)),
                Err(error) => {
                    sample.fail(&std::sync::Arc::new(error.into()));
                    self.metrics.failed += 1;
                }
            }
        }
    }

    /// Gives a sequence the logits of its last token, and of the guesses after it as long as they
    /// are right; how it ended, if so. All of its rows are taken.
    fn apply_draft<'a>(
        &mut self,
        index: usize,
        first: Row<'a>,
        draft_len: &[(u32, RequestedOutput)],
        rows: &mut impl Iterator<Item = Row<'a>>,
    ) -> Option<End> {
        let draft: Vec<_> = rows.take(draft_len.len()).collect();
        let known = self.running[index].sequence.context().len();
        let (mut end, mut right) = (self.apply_token(index, first), 0);
        for (row, (guess, _)) in draft.into_iter().zip(draft_len) {
            let sequence = &mut self.running[index].sequence;
            // Less than one more token where the row before has to run again.
            if end.is_some() || sequence.context()[known..].get(right) != Some(guess) {
                break;
            }
            sequence.commit_rows(1);
            right += 1;
            end = self.apply_token(index, row);
        }
        let Running { sequence, kv_slot, .. } = &mut self.running[index];
        sequence.record_draft(draft_len.len(), right);
        self.metrics.add_draft(draft_len.len(), right);
        let kept = self.cache.truncate(*kv_slot, sequence.cached());
        self.register_prefix(index);
        end.or_else(|| kept.err().map(|error| Err(error.into())))
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

    /// Gives a sequence its logits; how it ended, if so.
    fn apply_token(&mut self, index: usize, row: Row<'_>) -> Option<End> {
        let next = self.running[index].sequence.apply_logits(row);
        self.record_token(index);
        let Running { sequence, kv_slot, .. } = &mut self.running[index];
        match next {
            Ok(Next::Continue) => None,
            Ok(Next::Rerun) => {
                let kept = self.cache.truncate(*kv_slot, sequence.cached());
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
