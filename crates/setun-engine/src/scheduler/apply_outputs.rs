//! Application of a step's outputs to the sequences that they belong to.

use std::sync::Arc;

use setun_model::{Outputs, RequestedOutput, Row};

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
    let mut step = Application { running, kv, applied: AppliedStep::default() };
    if let Some(steps) = plan.multi_step {
        let wanted = plan.batch.wanted();
        check_argmax(&outputs.argmax, steps * wanted, plan.vocabulary)?;
        step.apply_argmax(&outputs.argmax, wanted);
    } else {
        check_outputs(&plan.batch, &outputs.rows, plan.vocabulary)?;
        step.apply_rows(&outputs.rows);
    }
    Ok(step.applied)
}

struct Application<'a> {
    running: &'a mut Vec<Running>,
    kv: &'a mut KvCache,
    applied: AppliedStep,
}

impl Application<'_> {
    fn apply_rows(&mut self, outputs: &Outputs) {
        let mut rows = outputs.rows();
        for index in 0..self.running.len() {
            let mut own = rows.by_ref().take(self.running[index].wanted);
            let end = self.apply_sequence(index, &mut own);
            own.for_each(drop); // those of one that failed before them
            self.end(index, end);
        }
    }

    /// Gives a sequence its rows; how it ended, if so.
    fn apply_sequence<'a>(
        &mut self,
        index: usize,
        rows: &mut impl Iterator<Item = Row<'a>>,
    ) -> Option<End> {
        let Running { sequence, reported, .. } = &mut self.running[index];
        let reported = rows.take(*reported).try_for_each(|row| sequence.apply_prompt_row(row));
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
        let row = rows.next()?;
        let draft = std::mem::take(&mut self.running[index].draft);
        if draft.len() > 1 {
            return self.apply_draft(index, row, &draft[1..], rows);
        }
        if self.running[index].sequence.is_search() {
            return self.apply_beams(index, row, rows);
        }
        let samples = self.fork_samples(index);
        for sample in samples {
            let end = self.apply_token(sample, row).or_else(|| self.apply_forced(sample));
            self.end(sample, end);
        }
        self.apply_token(index, row).or_else(|| self.apply_forced(index))
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
    /// they are accepted; how it ended, if so.
    fn apply_draft<'a>(
        &mut self,
        index: usize,
        first: Row<'a>,
        proposed: &[(u32, RequestedOutput)],
        rows: &mut impl Iterator<Item = Row<'a>>,
    ) -> Option<End> {
        let rows: Vec<_> = rows.take(proposed.len()).collect();
        let known = self.running[index].sequence.context().len();
        let (mut end, mut accepted) = (self.apply_token(index, first), 0);
        for (row, (token, _)) in rows.into_iter().zip(proposed) {
            let sequence = &mut self.running[index].sequence;
            // Less than one more token where the row before has to run again.
            if end.is_some() || sequence.context()[known..].get(accepted) != Some(token) {
                break;
            }
            sequence.commit_rows(1);
            accepted += 1;
            end = self.apply_token(index, row);
        }
        let running = &mut self.running[index];
        running.sequence.record_draft(proposed.len(), accepted);
        self.applied.drafts.push((proposed.len(), accepted));
        let kept = self.kv.truncate(running);
        self.kv.register_prefix(running);
        end.or_else(|| kept.err().map(Err))
    }

    /// Gives a search the logits of its rows; how it ended, if so.
    fn apply_beams<'a>(
        &mut self,
        index: usize,
        first: Row<'a>,
        rows: &mut impl Iterator<Item = Row<'a>>,
    ) -> Option<End> {
        let running = &mut self.running[index];
        let rows = std::iter::once(first).chain(rows.take(running.beam_rows.len()));
        let logits = rows.map(|row| match row {
            Row::Logits(logits) => logits,
            Row::Ranked(_) | Row::HiddenState(_) => &[], // which were not requested
        });
        let parents = match running.sequence.apply_beam_logits(&logits.collect::<Vec<_>>()) {
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
            match sequence.apply_argmax(token) {
                Ok(Next::Continue) => self.record_wait(index),
                next => return self.next(index, next), // the tokens after it are dropped
            }
        }
        None
    }

    /// Gives a sequence the logits of its last token; how it ended, if so.
    fn apply_token(&mut self, index: usize, row: Row<'_>) -> Option<End> {
        let next = self.running[index].sequence.apply_logits(row);
        self.next(index, next)
    }

    /// How a sequence ended with the token that it was given, if so.
    fn next(&mut self, index: usize, next: Result<Next, Error>) -> Option<End> {
        self.record_wait(index);
        match next {
            Ok(Next::Continue) => None,
            Ok(Next::Rerun) => self.kv.truncate(&self.running[index]).err().map(Err),
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
