//! The rows of a step.

use std::{cmp::Reverse, time::Duration};

use setun_model::{Batch, BatchRow, RequestedOutput, SequenceId};

use super::{Owner, Running, STEP_TARGET};
use crate::sequence::MAX_ECHOED;

/// [`STEP_TARGET`] for steps of prompts alone, where only a cancellation has to wait. All weights
/// are read in every step, so few long ones take less time than many.
const PROMPT_STEP_TARGET: Duration =
    if cfg!(target_arch = "wasm32") { STEP_TARGET } else { Duration::from_secs(2) };

/// Prompt rows of the first step, before it is known how long a row takes.
const FIRST_PROMPT_ROWS: usize = if cfg!(target_arch = "wasm32") { 4 } else { 64 };

/// One in so many rows of prompts is shared out evenly, so that short prompts pass long ones.
/// The others go to whoever is first, as prompts that all end late serve nobody.
const EVEN_SHARE: usize = 4;

impl Owner {
    /// The rows of the next step, or of the first of several in which the model chooses, and how
    /// many of them are more than one row a sequence. Who finds no room for its rows ends.
    pub(super) fn batch(&mut self, choosing: Option<usize>) -> (Batch, usize) {
        for place in self.strongest_first() {
            self.reserve(place, choosing.unwrap_or(1));
        }
        let mut batch = Batch::default();
        let mut prompt_rows = 0;
        for running in &mut self.running {
            running.told = 0;
            if running.rows > 0 && !running.twins.is_empty() {
                batch.rows.extend(running.twin_rows());
                prompt_rows +=
                    if running.sequence.pending().len() > 1 { running.width() } else { 0 };
                continue;
            }
            let Running { sequence, place, rows, told, guessed, .. } = running;
            if !guessed.is_empty() {
                let row = |(offset, (token, wants)): (usize, &(u32, RequestedOutput))| BatchRow {
                    token: *token,
                    position: sequence.cached() + offset,
                    sequence: *place,
                    output: wants.clone(),
                };
                batch.rows.extend(guessed.iter().enumerate().map(row));
                continue;
            }
            let pending = sequence.pending().len();
            let wants = match choosing {
                _ if *rows < pending => RequestedOutput::Nothing,
                Some(_) => sequence.choice(),
                None => sequence.wants(self.model.vocab_size()),
            };
            let tokens = &sequence.pending()[..*rows];
            batch.push_run(*place, sequence.cached(), tokens, wants);
            let first = batch.rows.len() - *rows;
            let telling = batch.rows[first..].get_mut(sequence.telling_rows(*rows));
            for row in telling.unwrap_or_default() {
                row.output = sequence.telling();
                *told += 1;
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
        prompts.sort_by_key(|running| running.weakness());
        let mut left = most.min(free);
        let mut told = MAX_ECHOED;
        let mut prompts: Vec<_> = prompts.into_iter().map(|r| (r.max_rows(&mut told), r)).collect();
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
    fn strongest_first(&self) -> Vec<SequenceId> {
        let mut strongest: Vec<_> = self.running.iter().filter(|r| r.rows > 0).collect();
        strongest.sort_by_key(|running| running.weakness());
        strongest.into_iter().map(|running| running.place).collect()
    }

    /// Room for the rows of a sequence, or for so many steps. Others make room, or it does.
    fn reserve(&mut self, place: SequenceId, steps: usize) {
        let is_it = |running: &Running| running.place == place;
        while let Some(index) = self.running.iter().position(is_it) {
            let Running { rows, guessed, .. } = &self.running[index];
            let positions = (*rows).max(steps).max(guessed.len());
            let Err(error) = self.extend(index, positions) else { return };
            let guessed = &mut self.running[index].guessed;
            if guessed.len() > 1 {
                guessed.clear(); // nobody has to give way to guesses
                continue;
            }
            match self.weakest(|_| true) {
                Some(weakest) if self.running.len() > 1 => self.preempt(weakest),
                _ => self.fail(index, error.into()),
            }
        }
    }

    /// As many rows of prompts as a step has time for beside so many that decode. Natively they
    /// may take as long as those, as a step reads all weights for however few rows.
    fn max_prompt_rows(&self, decoding: usize) -> usize {
        let target = if decoding > 0 { STEP_TARGET } else { PROMPT_STEP_TARGET };
        let may_double = decoding > 0 && !cfg!(target_arch = "wasm32");
        let rows = self.row_times.more(decoding, target, may_double);
        rows.unwrap_or(FIRST_PROMPT_ROWS).clamp(1, self.model.max_rows())
    }
}

impl Running {
    /// Rows that a step may have of its prompt, where so many may still tell of theirs.
    fn max_rows(&self, told: &mut usize) -> usize {
        let pending = self.sequence.pending().len();
        if self.sequence.is_pooled() {
            return pending; // states are small
        }
        let silent = self.sequence.silent_rows(pending);
        let most = pending.min(silent.saturating_add(*told));
        *told -= most - silent;
        most
    }

    /// Whether it is to get another token from its last one. The rows of a search that had given
    /// up their places come back to that token by token.
    pub(super) fn decodes(&self) -> bool {
        self.demands && (self.sequence.pending().len() == 1 || !self.twins.is_empty())
    }

    /// Later for those that give up their place earlier.
    fn weakness(&self) -> (Reverse<i32>, u64) {
        (Reverse(self.sequence.priority()), self.sequence.arrival)
    }
}
