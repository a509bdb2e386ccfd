//! Multi-step decoding: greedy tokens that the model chooses by itself, several in a row.

use std::time::Duration;

use super::{End, Running, STEP_TARGET, Scheduler};
use crate::sequence::Next;

impl Scheduler {
    /// How many steps the model is to make by itself; none where somebody wants logits. While a
    /// prompt is under way it is one, and never more than tokens that a sequence still wants: it
    /// has no room for others.
    pub(super) fn plan_multi_step(&self) -> Option<usize> {
        let mut steps = self.multi_steps.min(self.model.max_multi_steps());
        for running in self.running.iter().filter(|running| running.demands) {
            let sequence = &running.sequence;
            if !sequence.is_greedy() || sequence.count() > 1 {
                return None;
            }
            let most = if sequence.pending().len() == 1 { sequence.remaining() } else { 1 };
            steps = steps.min(most);
        }
        (steps > 0).then_some(steps)
    }

    /// Hands each sequence what the model chose for it, up to the token that ends it.
    pub(super) fn apply_multi_step(&mut self, steps: usize) {
        let argmax_tokens = std::mem::take(&mut self.argmax_tokens);
        let wanted = argmax_tokens.len() / steps;
        let mut columns = (0..wanted).map(|row| argmax_tokens[row..].iter().step_by(wanted));
        let mut ended: Vec<(usize, End)> = vec![];
        for index in 0..self.running.len() {
            if !self.commit_rows(index) {
                continue;
            }
            let Some(tokens) = columns.next() else { break };
            ended.extend(self.apply_argmax_tokens(index, tokens).map(|end| (index, end)));
            self.register_prefix(index);
        }
        drop(columns);
        self.argmax_tokens = argmax_tokens; // its memory serves the next step
        self.end_all(ended);
    }

    /// Gives a sequence its tokens; how it ended, if so.
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
            let next = sequence.apply_argmax(token);
            self.record_token(index);
            let Running { sequence, kv_slot, .. } = &mut self.running[index];
            match next {
                Ok(Next::Continue) => {}
                Ok(Next::Rerun) => {
                    let kept = self.cache.truncate(*kv_slot, sequence.cached());
                    return kept.err().map(|error| Err(error.into()));
                }
                Ok(Next::Finished(reason, stop)) => return Some(Ok((reason, stop))),
                Err(error) => return Some(Err(error)),
            }
        }
        None
    }

    /// Notes what a step of this many rows took, or several that followed each other; of those at
    /// most twice as many are made next time.
    pub(super) fn record_step_cost(
        &mut self,
        rows: usize,
        multi_step: Option<usize>,
        elapsed: Duration,
    ) {
        let steps = multi_step.map_or(1, |steps| u32::try_from(steps).unwrap_or(u32::MAX));
        let step = elapsed / steps.max(1);
        self.step_cost.record(rows, step);
        if multi_step.is_some() {
            let fit = STEP_TARGET.as_nanos() / step.as_nanos().max(1);
            let fit = usize::try_from(fit).unwrap_or(usize::MAX);
            let most = self.model.max_multi_steps().min(2 * self.multi_steps);
            self.multi_steps = fit.clamp(1, most.max(1));
        }
    }
}
