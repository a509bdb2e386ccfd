//! Steps in which the model chooses greedy tokens by itself, several one after the other.

use std::time::Duration;

use super::{End, Owner, STEP_TARGET};
use crate::{error::Error, sequence::Next};

impl Owner {
    /// How many steps the model is to make by itself; none where somebody wants logits. While a
    /// prompt is under way it is one, and never more than tokens that a sequence still wants: it
    /// has no room for others.
    pub(super) fn choosing_steps(&self) -> Option<usize> {
        let mut steps = self.following.min(self.model.most_following());
        for running in self.running.iter().filter(|running| running.demands) {
            let sequence = &running.sequence;
            if !sequence.is_greedy() {
                return None;
            }
            let most = if sequence.pending().len() == 1 { sequence.remaining() } else { 1 };
            steps = steps.min(most);
        }
        (steps > 0).then_some(steps)
    }

    /// Hands each sequence what the model chose for it, up to the token that ends it.
    pub(super) fn accept_chosen(&mut self, steps: usize) -> Result<(), Error> {
        let wanted = self.chosen.len() / steps;
        let mut columns = (0..wanted).map(|row| self.chosen[row..].iter().step_by(wanted));
        let mut ended: Vec<(usize, End)> = vec![];
        for (index, running) in self.running.iter_mut().enumerate() {
            let sequence = &mut running.sequence;
            if running.rows == 0 {
                continue;
            }
            sequence.advance(running.rows);
            if !sequence.pending().is_empty() {
                continue;
            }
            let Some(tokens) = columns.next() else { break };
            for (step, &token) in tokens.enumerate() {
                if step > 0 {
                    sequence.advance(1);
                }
                match sequence.accept_chosen(token) {
                    Ok(Next::Continue) => continue,
                    Ok(Next::Again) => self.cache.truncate(sequence.id, sequence.cached())?,
                    Ok(Next::Finished(reason, stop)) => ended.push((index, Ok((reason, stop)))),
                    Err(error) => ended.push((index, Err(error))),
                }
                break;
            }
        }
        self.end_all(ended);
        Ok(())
    }

    /// Notes what a step took that had no rows of prompts, or several that followed each other;
    /// of those at most twice as many are made next time.
    pub(super) fn note_plain(&mut self, elapsed: Duration, choosing: Option<usize>) {
        let steps = choosing.map_or(1, |steps| u32::try_from(steps).unwrap_or(u32::MAX));
        self.plain_step = elapsed / steps;
        if choosing.is_some() {
            let fit = STEP_TARGET.as_nanos() / self.plain_step.as_nanos().max(1);
            let fit = usize::try_from(fit).unwrap_or(usize::MAX);
            let most = self.model.most_following().min(2 * self.following);
            self.following = fit.clamp(1, most.max(1));
        }
    }
}
