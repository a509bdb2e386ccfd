//! The rows of a step.

use std::{cmp::Reverse, time::Duration};

use setun_model::{Batch, BatchRow, RequestedOutput, SequenceId};

use super::{Running, STEP_TARGET, Scheduler};
use crate::sequence::MAX_PROMPT_LOGPROB_ROWS;

/// [`STEP_TARGET`] for steps of prompts alone, where only a cancellation has to wait. All weights
/// are read in every step, so few long ones take less time than many.
const PROMPT_STEP_TARGET: Duration =
    if cfg!(target_arch = "wasm32") { STEP_TARGET } else { Duration::from_secs(2) };

/// Prompt rows of the first step, before it is known how long a row takes.
const FIRST_PROMPT_ROWS: usize = if cfg!(target_arch = "wasm32") { 4 } else { 64 };

/// One in so many rows of prompts is shared out evenly, so that short prompts pass long ones.
/// The others go to whoever is first, as prompts that all end late serve nobody.
const EVEN_SHARE: usize = 4;

impl Scheduler {
    /// The rows of the next step, or of the first of several in which the model chooses, and how
    /// many of them are more than one row a sequence. Who finds no room for its rows ends.
    pub(super) fn batch(&mut self, multi_step: Option<usize>) -> (Batch, usize) {
        for kv_slot in self.last_preempted_first() {
            self.reserve(kv_slot, multi_step.unwrap_or(1));
        }
        let mut batch = Batch::default();
        let mut prompt_rows = 0;
        for running in &mut self.running {
            running.reported = 0;
            if running.rows > 0 && !running.beam_rows.is_empty() {
                batch.rows.extend(running.beam_batch_rows());
                prompt_rows +=
                    if running.sequence.pending().len() > 1 { running.width() } else { 0 };
                continue;
            }
            let Running { sequence, kv_slot, rows, reported, draft, .. } = running;
            if !draft.is_empty() {
                let row =
                    |(offset, (token, output_needed)): (usize, &(u32, RequestedOutput))| BatchRow {
                        token: *token,
                        position: sequence.cached() + offset,
                        sequence: *kv_slot,
                        output: output_needed.clone(),
                    };
                batch.rows.extend(draft.iter().enumerate().map(row));
                continue;
            }
            let pending = sequence.pending().len();
            let output_needed = match multi_step {
                _ if *rows < pending => RequestedOutput::Nothing,
                Some(_) => sequence.choice(),
                None => sequence.output_needed(self.model.vocab_size()),
            };
            let tokens = &sequence.pending()[..*rows];
            batch.push_run(*kv_slot, sequence.cached(), tokens, output_needed);
            let first = batch.rows.len() - *rows;
            let prompt_output = batch.rows[first..].get_mut(sequence.prompt_output_rows(*rows));
            for row in prompt_output.unwrap_or_default() {
                row.output = sequence.prompt_output();
                *reported += 1;
            }
            if pending > 1 {
                prompt_rows += *rows;
            }
        }
        (batch, prompt_rows)
    }

    /// Those whose rows give hidden states and those whose rows go through the head have every
    /// other step, where there are both.
    pub(super) fn take_turns(&mut self) {
        let demands = |pooled: bool| {
            self.running.iter().any(|r| r.demands && r.sequence.is_pooled() == pooled)
        };
        if demands(true) && demands(false) {
            self.is_pooling = !self.is_pooling;
            for running in &mut self.running {
                running.demands &= running.sequence.is_pooled() == self.is_pooling;
            }
        }
    }

    /// How many rows each sequence has: one where it decodes, and of its prompt as many as there
    /// is time for.
    pub(super) fn share_rows(&mut self) {
        let mut free = self.model.max_rows();
        let all = free;
        for running in &mut self.running {
            running.rows = usize::from(running.decodes() && free >= running.width());
            free -= running.rows * running.width();
        }
        let most = self.max_prompt_rows(all - free);
        let mut prompts: Vec<_> =
            self.running.iter_mut().filter(|r| r.demands && !r.decodes()).collect();
        prompts.sort_by_key(|running| running.preemption_order());
        let mut left = most.min(free);
        let mut reported = MAX_PROMPT_LOGPROB_ROWS;
        let mut prompts: Vec<_> =
            prompts.into_iter().map(|r| (r.max_rows(&mut reported), r)).collect();
        let even = (left / EVEN_SHARE / prompts.len().max(1)).max(1);
        for (pending, running) in &mut prompts {
            running.rows = even.min(*pending).min(left);
            left -= running.rows;
        }
        for (pending, running) in prompts {
            let rows = running.rows;
            if pending > 0 && rows + left > 0 {
                // In steps of like size: a short last one would read all weights for few rows.
                let whole = pending.div_ceil(pending.div_ceil(rows + left)).max(rows);
                left -= whole - rows;
                running.rows = whole;
            }
        }
    }

    /// Those that have rows, the one that gives up its place last first.
    fn last_preempted_first(&self) -> Vec<SequenceId> {
        let mut strongest: Vec<_> = self.running.iter().filter(|r| r.rows > 0).collect();
        strongest.sort_by_key(|running| running.preemption_order());
        strongest.into_iter().map(|running| running.kv_slot).collect()
    }

    /// Room for the rows of a sequence, or for so many steps. Others make room, or it does.
    fn reserve(&mut self, kv_slot: SequenceId, steps: usize) {
        let is_it = |running: &Running| running.kv_slot == kv_slot;
        while let Some(index) = self.running.iter().position(is_it) {
            let Running { rows, draft, .. } = &self.running[index];
            let positions = (*rows).max(steps).max(draft.len());
            let Err(error) = self.extend(index, positions) else { return };
            let draft = &mut self.running[index].draft;
            if draft.len() > 1 {
                draft.clear(); // nobody has to give way to guesses
                continue;
            }
            match self.preemption_victim(|_| true) {
                Some(preemption_victim) if self.running.len() > 1 => {
                    self.preempt(preemption_victim)
                }
                _ => self.fail(index, error.into()),
            }
        }
    }

    /// As many rows of prompts as a step has time for beside so many that decode. Natively they
    /// may take as long as those, as a step reads all weights for however few rows.
    fn max_prompt_rows(&self, decoding: usize) -> usize {
        let target = if decoding > 0 { STEP_TARGET } else { PROMPT_STEP_TARGET };
        let may_double = decoding > 0 && !cfg!(target_arch = "wasm32");
        let rows = self.step_cost.more(decoding, target, may_double);
        rows.unwrap_or(FIRST_PROMPT_ROWS).clamp(1, self.model.max_rows())
    }
}

impl Running {
    /// Rows that a step may have of its prompt, where so many may still tell of theirs.
    fn max_rows(&self, reported: &mut usize) -> usize {
        let pending = self.sequence.pending().len();
        if self.sequence.is_pooled() {
            return pending; // states are small
        }
        let silent = self.sequence.plain_rows(pending);
        let most = pending.min(silent.saturating_add(*reported));
        *reported -= most - silent;
        most
    }

    /// Whether it is to get another token from its last one. The rows of a search that had given
    /// up their places come back to that token by token.
    pub(super) fn decodes(&self) -> bool {
        self.demands && (self.sequence.pending().len() == 1 || !self.beam_rows.is_empty())
    }

    /// Later for those that give up their place earlier.
    fn preemption_order(&self) -> (Reverse<i32>, u64) {
        (Reverse(self.sequence.priority()), self.sequence.arrival)
    }
}
