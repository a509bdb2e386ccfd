//! The plan of a step: how many rows each sequence has, and the batch of them.

use std::time::Duration;

use setun_model::{Batch, BatchRow, RequestedOutput};

use super::{Running, STEP_TARGET, step_cost::StepCost};
use crate::sequence::MAX_PROMPT_LOGPROB_ROWS;

/// [`STEP_TARGET`] for steps of prompts alone, where only a cancellation has to wait. All weights
/// are read in every step, so few long ones take less time than many.
const PROMPT_STEP_TARGET: Duration =
    if cfg!(target_arch = "wasm32") { STEP_TARGET } else { Duration::from_secs(2) };

/// Prompt rows of the first step, before it is known how long a row takes.
const FIRST_PROMPT_ROWS: usize = if cfg!(target_arch = "wasm32") { 4 } else { 64 };

/// One in this many rows of prompts is shared out evenly, so that short prompts pass long ones.
/// The others go to whoever is first, as prompts that all end late serve nobody.
const EVEN_SHARE: usize = 4;

/// Rows that a step has room and time for.
pub(super) struct Budget<'a> {
    /// Most rows of a step.
    pub(super) max_rows: usize,
    /// What earlier steps took.
    pub(super) step_cost: &'a StepCost,
}

impl Budget<'_> {
    /// Rows of prompts that a step has time for beside those that decode. Natively they may take
    /// as long as those, as a step reads all weights for however few rows.
    fn prompt_rows(&self, decoding: usize) -> usize {
        let target = if decoding > 0 { STEP_TARGET } else { PROMPT_STEP_TARGET };
        let may_double = decoding > 0 && !cfg!(target_arch = "wasm32");
        let rows = self.step_cost.more(decoding, target, may_double);
        rows.unwrap_or(FIRST_PROMPT_ROWS).clamp(1, self.max_rows)
    }
}

/// Those whose rows give hidden states and those whose rows go through the head have every
/// other step, where there are both.
pub(super) fn take_turns(running: &mut [Running], is_pooling: &mut bool) {
    let demands =
        |pooled: bool| running.iter().any(|r| r.demands && r.sequence.is_pooled() == pooled);
    if demands(true) && demands(false) {
        *is_pooling = !*is_pooling;
        for running in running.iter_mut() {
            running.demands &= running.sequence.is_pooled() == *is_pooling;
        }
    }
}

/// How many rows each sequence has: one where it decodes, and of its prompt as many as there
/// is time for.
pub(super) fn plan_step(running: &mut [Running], budget: &Budget<'_>) {
    let mut free = budget.max_rows;
    let all = free;
    for running in running.iter_mut() {
        running.rows = usize::from(running.decodes() && free >= running.width());
        free -= running.rows * running.width();
    }
    let most = budget.prompt_rows(all - free);
    let mut prompts: Vec<_> = running.iter_mut().filter(|r| r.demands && !r.decodes()).collect();
    prompts.sort_by_key(|running| running.preemption_order());
    let mut left = most.min(free);
    let mut reported = MAX_PROMPT_LOGPROB_ROWS;
    let mut prompts: Vec<_> = prompts.into_iter().map(|r| (r.max_rows(&mut reported), r)).collect();
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

/// The rows of the next step, or of the first of several in which the model chooses, and how
/// many of them are more than one row a sequence.
pub(super) fn batch_rows(
    running: &mut [Running],
    multi_step: Option<usize>,
    vocabulary: usize,
) -> (Batch, usize) {
    let mut batch = Batch::default();
    let mut prompt_rows = 0;
    for running in running.iter_mut() {
        running.reported = 0;
        if running.rows > 0 && !running.beam_rows.is_empty() {
            batch.rows.extend(running.beam_batch_rows());
            prompt_rows += if running.sequence.pending().len() > 1 { running.width() } else { 0 };
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
            None => sequence.output_needed(vocabulary),
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

impl Running {
    /// Rows that a step may have of its prompt, where this many may still tell of theirs.
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
    pub(super) fn preemption_order(&self) -> (std::cmp::Reverse<i32>, u64) {
        (std::cmp::Reverse(self.sequence.priority()), self.sequence.arrival)
    }
}

#[cfg(test)]
mod tests;
