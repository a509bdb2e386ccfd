//! The plan of a step: how many rows each sequence has, and the batch of them.

use std::time::Duration;

use setun_model::{Batch, BatchRow, RequestedOutput};

use super::{
    Running, STEP_TARGET, mask_worker::MASKS_A_STEP, running::last_preempted_first,
    step_cost::StepCost,
};
use crate::sequence::MAX_PROMPT_LOGPROB_ROWS;

/// [`STEP_TARGET`] for steps of prompts alone, where only a cancellation has to wait. All weights
/// are read in every step, so few long ones take less time than many.
const PROMPT_STEP_TARGET: Duration =
    if cfg!(target_arch = "wasm32") { STEP_TARGET } else { Duration::from_secs(2) };

/// Prompt rows of the first step, before it is known how long a row takes, and natively the fewest of a step
/// of prompts alone: the largest models would else read all weights for a few rows.
const FIRST_PROMPT_ROWS: usize = if cfg!(target_arch = "wasm32") { 4 } else { 64 };

/// One in this many rows of prompts is shared out evenly, so that short prompts pass long ones.
/// The others go to whoever is first, as otherwise all prompts would end late.
const EVEN_SHARE: usize = 4;

/// Rows that a step has room and time for.
pub(super) struct Budget<'a> {
    /// Most rows of a step.
    pub(super) max_rows: usize,
    /// Most steps that the model makes by itself.
    pub(super) max_multi_steps: usize,
    /// What earlier steps took.
    pub(super) step_cost: &'a StepCost,
    /// Whether the last step gave hidden states.
    pub(super) is_pooling: &'a mut bool,
}

impl Budget<'_> {
    /// Rows of prompts that a step has time for beside those that decode. Natively they may take
    /// as long as those, as a step reads all weights for however few rows.
    fn prompt_rows(&self, decoding: usize) -> usize {
        let target = if decoding > 0 { STEP_TARGET } else { PROMPT_STEP_TARGET };
        let may_double = decoding > 0 && !cfg!(target_arch = "wasm32");
        let rows = self.step_cost.more(decoding, target, may_double);
        let is_alone = decoding == 0 && !cfg!(target_arch = "wasm32");
        let least = if is_alone { FIRST_PROMPT_ROWS } else { 1 };
        rows.unwrap_or(FIRST_PROMPT_ROWS).max(least).min(self.max_rows)
    }
}

/// A step that is ready to run.
pub(super) struct StepPlan {
    pub(super) batch: Batch,
    /// How many of its rows are more than one row a sequence.
    pub(super) prompt_rows: usize,
    /// Whether some rows are of prompts.
    pub(super) is_prefill: bool,
    /// In how many steps the model chooses greedy tokens by itself; none where it gives outputs.
    pub(super) multi_step: Option<usize>,
    /// Tokens that the model knows.
    pub(super) vocabulary: usize,
}

/// Decides how many rows of the next step each sequence has, and in how many steps the model may
/// choose by itself: none where somebody wants outputs.
pub(super) fn plan_step(running: &mut [Running], budget: &mut Budget<'_>) -> Option<usize> {
    // Once, as a consumer may change it at any time.
    for running in running.iter_mut() {
        running.demands = running.sequence.demands();
    }
    leave_late_masks(running);
    take_turns(running, budget.is_pooling);
    share_rows(running, budget);
    multi_steps(running, budget)
}

/// Those whose mask is still being computed after a step take no part in the next one, where others do:
/// these would wait for it.
fn leave_late_masks(running: &mut [Running]) {
    if cfg!(target_family = "wasm") {
        return; // no thread computes them
    }
    let mut late = vec![];
    for (index, running) in running.iter_mut().enumerate().filter(|(_, running)| running.demands) {
        if running.sequence.constraint().is_some_and(|state| state.is_late(MASKS_A_STEP)) {
            late.push(index);
        }
    }
    let others = running.iter().filter(|running| running.demands).count() - late.len();
    if others > 0 {
        for index in late {
            running[index].demands = false;
        }
    }
}

/// Those whose rows give hidden states and those whose rows go through the head have every
/// other step, where there are both.
fn take_turns(running: &mut [Running], is_pooling: &mut bool) {
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
fn share_rows(running: &mut [Running], budget: &Budget<'_>) {
    let mut free = budget.max_rows;
    let all = free;
    for running in running.iter_mut() {
        running.rows = usize::from(running.decodes() && free >= running.width());
        free -= running.rows * running.width();
    }
    let most = budget.prompt_rows(all - free);
    let prompts = last_preempted_first(running, |running| running.demands && !running.decodes());
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

/// In how many steps greedy tokens are chosen by the model. While a prompt is under way it is one,
/// and never more than tokens that a sequence still wants: it has no room for others.
fn multi_steps(running: &[Running], budget: &Budget<'_>) -> Option<usize> {
    let mut steps = budget.step_cost.multi_steps().min(budget.max_multi_steps);
    for running in running.iter().filter(|running| running.demands) {
        let sequence = &running.sequence;
        if !sequence.is_greedy() || sequence.count() > 1 {
            return None;
        }
        let most = if sequence.pending().len() == 1 { sequence.remaining() } else { 1 };
        steps = steps.min(most);
    }
    (steps > 0).then_some(steps)
}

impl StepPlan {
    /// The batch of the rows that sequences have, drafted tokens among them.
    pub(super) fn new(
        running: &mut [Running],
        multi_step: Option<usize>,
        vocabulary: usize,
    ) -> Self {
        let is_prefill = running.iter().any(Running::is_prefill);
        let batch = Batch::default();
        let mut plan = Self { batch, prompt_rows: 0, is_prefill, multi_step, vocabulary };
        for running in running.iter_mut() {
            running.reported = 0;
            let first = plan.batch.rows.len();
            let pending = running.sequence.pending().len();
            if running.rows > 0 && !running.beam_rows.is_empty() {
                plan.batch.rows.extend(running.beam_batch_rows());
                plan.prompt_rows += if pending > 1 { running.width() } else { 0 };
            } else if running.draft.is_empty() {
                plan.add_run(running);
                plan.prompt_rows += if pending > 1 { running.rows } else { 0 };
            } else {
                plan.add_draft(running);
            }
            let rows = plan.batch.rows[first..].iter();
            running.wanted = rows.filter(|row| row.output != RequestedOutput::Nothing).count();
        }
        plan
    }

    /// Steps of the model.
    pub(super) fn steps(&self) -> usize {
        self.multi_step.unwrap_or(1)
    }

    fn add_run(&mut self, running: &mut Running) {
        let Running { sequence, kv_slot, rows, reported, .. } = running;
        let output = match self.multi_step {
            _ if *rows < sequence.pending().len() => RequestedOutput::Nothing,
            Some(_) => sequence.choice(),
            None => sequence.output_needed(self.vocabulary),
        };
        let tokens = &sequence.pending()[..*rows];
        let first = self.batch.rows.len();
        self.batch.push_run(*kv_slot, sequence.cached(), tokens, output);
        let reporting = self.batch.rows[first..].get_mut(sequence.prompt_output_rows(*rows));
        for row in reporting.unwrap_or_default() {
            row.output = sequence.prompt_output();
            *reported += 1;
        }
    }

    fn add_draft(&mut self, running: &Running) {
        let Running { sequence, kv_slot, draft, .. } = running;
        let rows = draft.iter().zip(sequence.cached()..);
        self.batch.rows.extend(rows.map(|((token, output), position)| BatchRow {
            token: *token,
            position,
            sequence: *kv_slot,
            output: output.clone(),
        }));
    }
}

impl Running {
    /// Rows that a step may have of its prompt, where this many more prompt log-probabilities fit
    /// the step.
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
}

#[cfg(test)]
mod tests;
