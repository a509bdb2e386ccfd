//! Application of a step's outputs to the sequences that they belong to.

use std::{ops::Range, sync::Arc};

use setun_model::{Outputs, Row};

use super::{
    KvCache, Running, StepPlan,
    check_outputs::{check_argmax, check_outputs},
    mask_worker::prepared,
};
use crate::{
    beams::kv_slots,
    error::Error,
    event::FinishReason,
    sequence::{Next, Wait},
};

/// How a sequence ended: why, and by which stop string.
pub(super) type End = Result<(FinishReason, Option<String>), Error>;

/// What a model gave for a step. The memory serves all steps.
#[derive(Default)]
pub(super) struct StepOutputs {
    pub(super) rows: Outputs,
    /// Of multi-step decoding in place of rows, `[steps, wanted rows]`.
    pub(super) argmax: Vec<u32>,
    /// For rows that were undecided, from the head alone.
    pub(super) head: HeadOutputs,
}

/// Logits of the head alone.
#[derive(Default)]
pub(super) struct HeadOutputs {
    /// Which of the step's output rows, ascending.
    pub(super) rows: Vec<usize>,
    /// All their logits.
    pub(super) logits: Outputs,
}

impl StepOutputs {
    /// An output row, from the head alone where it ran. All were checked to be there.
    fn row(&self, row: usize) -> Row<'_> {
        let Self { rows, head, .. } = self;
        let alone = head.rows.binary_search(&row).ok().and_then(|row| head.logits.row(row));
        alone.or_else(|| rows.row(row)).unwrap_or(Row::Ranked(&[]))
    }
}

/// An output row whose logits do not decide the token of a sequence.
#[derive(Clone, Copy, Debug)]
pub(super) struct Undecided {
    pub(super) row: usize,
    /// Index of the sequence.
    index: usize,
    /// Drafted tokens before it.
    accepted: usize,
}

/// What the outputs of a step came to. Tokens lie in the queues of their streams.
#[derive(Debug, Default)]
pub(super) struct AppliedStep {
    /// What the consumer of each token has waited for.
    pub(super) waits: Vec<Wait>,
    /// Of each verified draft, how many tokens were proposed and accepted.
    pub(super) drafts: Vec<(usize, usize)>,
    /// The sequences that are over, by their index, and how they ended.
    pub(super) ended: Vec<(usize, End)>,
    /// Rows that are to be decided by all their logits, ascending. Several samples may have one.
    pub(super) undecided: Vec<Undecided>,
    /// Samples that found no slot in the cache; their streams have the error.
    pub(super) failed_samples: u64,
}

/// Gives each sequence its rows of a step's outputs, and samples that waited for a prompt a slot of
/// their own behind the others.
///
/// # Errors
///
/// If a model gave other outputs than the plan requested. No sequence has changed then.
pub(super) fn apply_outputs(
    running: &mut Vec<Running>,
    kv: &mut KvCache,
    plan: &StepPlan,
    outputs: &StepOutputs,
) -> Result<AppliedStep, Error> {
    let mut applied = AppliedStep::default();
    let mut step = Application { running, kv, outputs, applied: &mut applied };
    if let Some(steps) = plan.multi_step {
        let wanted = plan.batch.wanted();
        check_argmax(&outputs.argmax, steps * wanted, plan.vocabulary)?;
        step.apply_argmax(&outputs.argmax, wanted);
    } else {
        check_outputs(&plan.batch, &outputs.rows, plan.vocabulary)?;
        step.apply_rows();
    }
    Ok(applied)
}

/// Continues the sequences whose rows were undecided, for which the head has run.
pub(super) fn apply_head(
    running: &mut Vec<Running>,
    kv: &mut KvCache,
    outputs: &StepOutputs,
    applied: &mut AppliedStep,
) {
    let undecided = std::mem::take(&mut applied.undecided);
    let mut step = Application { running, kv, outputs, applied };
    for Undecided { row, index, accepted } in undecided {
        let end = step.apply_tokens(index, row, accepted);
        step.end(index, end);
    }
}

struct Application<'a> {
    running: &'a mut Vec<Running>,
    kv: &'a mut KvCache,
    outputs: &'a StepOutputs,
    applied: &'a mut AppliedStep,
}

impl Application<'_> {
    fn apply_rows(&mut self) {
        let mut first = 0;
        for index in 0..self.running.len() {
            let rows = first..first + self.running[index].wanted;
            first = rows.end; // some may be of one that failed before them
            let end = self.apply_sequence(index, rows);
            self.end(index, end);
        }
    }

    /// Gives a sequence its rows; how it ended, if so.
    fn apply_sequence(&mut self, index: usize, mut rows: Range<usize>) -> Option<End> {
        let Running { sequence, reported, .. } = &mut self.running[index];
        let mut reported = rows.by_ref().take(*reported).map(|row| self.outputs.row(row));
        let reported = reported.try_for_each(|row| sequence.apply_prompt_row(row));
        if !self.commit_rows(index) {
            return reported.err().map(Err);
        }
        let sequence = &mut self.running[index].sequence;
        if let Err(error) = reported.and_then(|()| sequence.report_prompt()) {
            return Some(Err(error));
        }
        if let Some(end) = sequence.end_of_prompt() {
            for sample in self.fork_samples(index) {
                self.end(sample, Some(Ok(end.clone())));
            }
            return Some(Ok(end));
        }
        if rows.is_empty() {
            return None;
        }
        if self.running[index].sequence.is_search() {
            return self.apply_beams(index, rows);
        }
        let row = rows.start;
        for sample in self.fork_samples(index) {
            let end = self.apply_tokens(sample, row, 0);
            self.end(sample, end);
        }
        self.apply_tokens(index, row, 0)
    }

    /// Gives a sequence the tokens that its constraint leaves no choice about: all are rows of the
    /// next step. How it ended with one, if so.
    fn apply_forced(&mut self, index: usize) -> Option<End> {
        while let Some(next) = self.running[index].sequence.take_forced(prepared) {
            let end = self.next(index, next);
            if end.is_some() {
                return end;
            }
        }
        None
    }

    /// The rows of a sequence have entered the cache. Whether they were the last it had.
    fn commit_rows(&mut self, index: usize) -> bool {
        let running = &mut self.running[index];
        if running.rows == 0 {
            return false;
        }
        running.sequence.commit_rows(running.rows);
        running.sequence.report_progress();
        self.kv.register_prefix(running);
        self.kv.fork_rows(running);
        running.sequence.pending().is_empty()
    }

    /// Those that waited for the prompt of this one go on from where it is; which they are.
    fn fork_samples(&mut self, index: usize) -> std::ops::Range<usize> {
        let first = self.running.len();
        let Running { sequence, kv_slot, .. } = &mut self.running[index];
        let kv_slot = *kv_slot;
        for mut sample in sequence.take_samples() {
            match self.kv.pool.fork(kv_slot) {
                Ok(kv_slot) => self.running.push(Running::new(sample, kv_slot)),
                Err(error) => {
                    sample.fail(&Arc::new(error.into()));
                    self.applied.failed_samples += 1;
                }
            }
        }
        first..self.running.len()
    }

    /// Gives a sequence the logits of its last token, and of the drafted ones after it as long as
    /// they are accepted, from this row on; how it ended, if so.
    fn apply_tokens(&mut self, index: usize, mut row: usize, mut accepted: usize) -> Option<End> {
        let end = loop {
            let sequence = &mut self.running[index].sequence;
            let Some(next) = sequence.apply_logits(self.outputs.row(row)).transpose() else {
                self.applied.undecided.push(Undecided { row, index, accepted });
                return None;
            };
            let end = self.next(index, next);
            let Running { sequence, draft, .. } = &mut self.running[index];
            let drafted = draft.get(accepted + 1).map(|(token, _)| token);
            if end.is_some() || drafted.is_none() || drafted != sequence.context().last() {
                break end;
            }
            sequence.commit_rows(1);
            (row, accepted) = (row + 1, accepted + 1);
        };
        let running = &mut self.running[index];
        let proposed = std::mem::take(&mut running.draft).len().saturating_sub(1);
        if proposed == 0 {
            return end.or_else(|| self.apply_forced(index));
        }
        running.sequence.record_draft(proposed, accepted);
        self.applied.drafts.push((proposed, accepted));
        let kept = self.kv.truncate(running);
        self.kv.register_prefix(running);
        end.or_else(|| kept.err().map(Err))
    }

    /// Gives a search the logits of its rows; how it ended, if so.
    fn apply_beams(&mut self, index: usize, rows: Range<usize>) -> Option<End> {
        let logits = rows.map(|row| match self.outputs.row(row) {
            Row::Logits(logits) => logits,
            Row::Ranked(_) | Row::HiddenState(_) => &[], // which were not requested
        });
        let logits: Vec<_> = logits.collect();
        let running = &mut self.running[index];
        let parents = match running.sequence.apply_beam_logits(&logits) {
            Ok(parents) if parents.is_empty() => return Some(Ok((FinishReason::Stop, None))),
            Ok(parents) => parents,
            Err(error) => return Some(Err(error)),
        };
        let mut kv_slots: Vec<_> = running.kv_slots().collect();
        let followed = kv_slots::follow(&mut self.kv.pool, &mut kv_slots, &parents);
        running.kv_slot = kv_slots.remove(0);
        running.beam_rows = kv_slots;
        followed.err().map(|error| Err(error.into()))
    }

    /// Gives each sequence the tokens that the device chose for it, up to the one that ends it.
    fn apply_argmax(&mut self, tokens: &[u32], wanted: usize) {
        let mut columns = (0..wanted).map(|row| tokens[row..].iter().step_by(wanted));
        for index in 0..self.running.len() {
            if !self.commit_rows(index) {
                continue;
            }
            let Some(tokens) = columns.next() else { break };
            let end = self.apply_argmax_tokens(index, tokens);
            self.end(index, end);
            self.kv.register_prefix(&self.running[index]);
        }
    }

    fn apply_argmax_tokens<'a>(
        &mut self,
        index: usize,
        tokens: impl Iterator<Item = &'a u32>,
    ) -> Option<End> {
        for (step, &token) in tokens.enumerate() {
            let sequence = &mut self.running[index].sequence;
            if step > 0 {
                sequence.commit_rows(1);
            }
            match sequence.apply_argmax(token).transpose()? {
                Ok(Next::Continue) => self.record_wait(index),
                next => return self.next(index, next), // the tokens after it are dropped
            }
        }
        None
    }

    /// How a sequence ended with the token that it was given, if so.
    fn next(&mut self, index: usize, next: Result<Next, Error>) -> Option<End> {
        self.record_wait(index);
        match next {
            Ok(Next::Continue) => None,
            Ok(Next::Finished(reason, stop)) => Some(Ok((reason, stop))),
            Err(error) => Some(Err(error)),
        }
    }

    fn record_wait(&mut self, index: usize) {
        self.applied.waits.extend(self.running[index].sequence.take_wait());
    }

    fn end(&mut self, index: usize, end: Option<End>) {
        self.applied.ended.extend(end.map(|end| (index, end)));
    }
}

#[cfg(test)]
mod tests;
