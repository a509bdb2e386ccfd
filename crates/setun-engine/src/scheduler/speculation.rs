//! Drafts of the next tokens, by prompt lookup or by a draft model. The step verifies them, so that
//! nothing that happens to a draft changes a text.

use super::{DraftModelRunner, Scheduler};
use crate::inferencer::max_wanted_rows;

impl Scheduler {
    /// Guesses tokens for sequences that request it, as far as there is room for their logits.
    pub(super) async fn propose_drafts(&mut self) {
        self.running.iter_mut().for_each(|running| running.draft.clear());
        let (cost, draft_runner) = (self.draft_cost(), self.model.draft.take());
        let Some(mut draft_runner) = draft_runner else { return self.propose_from_texts() };
        if draft_runner.is_paused() {
            self.propose_from_texts();
        } else {
            self.propose_by_model(&mut draft_runner, cost).await;
        }
        self.model.draft = Some(draft_runner);
        self.stats.metrics.memory = self.model.memory();
    }

    fn propose_from_texts(&mut self) {
        let (vocabulary, mut room) = (self.model.target.vocab_size(), self.draft_room());
        let most = self.model.target.max_tentative();
        for running in self.running.iter_mut().filter(|running| running.may_speculate()) {
            let draft = running.sequence.propose_from_text(room.min(most), vocabulary);
            room -= draft.len();
            running.draft = running.sequence.draft_rows(draft, vocabulary);
        }
    }

    async fn propose_by_model(&mut self, draft_runner: &mut DraftModelRunner, cost: f64) {
        let (vocabulary, mut room) = (self.model.target.vocab_size(), self.draft_room());
        let most = self.model.target.max_tentative();
        let mut asked = vec![];
        for (index, running) in self.running.iter_mut().enumerate() {
            if running.may_speculate() {
                let count = running.sequence.draft_len(room.min(most), cost);
                room -= count;
                asked.extend((count > 0).then_some((index, count)));
            }
        }
        let running = &self.running;
        draft_runner.retain(|kv_slot| running.iter().any(|running| running.kv_slot == kv_slot));
        let request = |&(index, count): &(usize, usize)| {
            running[index].sequence.draft_request(running[index].kv_slot, count)
        };
        let requests: Vec<_> = asked.iter().map(request).collect();
        let Some(proposed) = draft_runner.propose(&requests).await else { return };
        for ((index, _), draft) in asked.into_iter().zip(proposed) {
            let running = &mut self.running[index];
            running.draft = running.sequence.draft_rows(draft, vocabulary);
        }
    }

    /// Rows that a step may have for guesses.
    fn draft_room(&self) -> usize {
        let rows: usize = self.running.iter().map(|running| running.rows * running.width()).sum();
        let model = &*self.model.target;
        model.max_rows().min(max_wanted_rows(model)).saturating_sub(rows)
    }

    /// A guess costs what a draft's bytes take to be read, beside those of a step.
    fn draft_cost(&self) -> f64 {
        let target = self.model.target.memory().weights();
        let draft = self.model.draft.as_ref().map_or(0, |draft| draft.memory().weights());
        #[expect(clippy::cast_precision_loss, reason = "a ratio")]
        let cost = if target == 0 { 0.0 } else { draft as f64 / target as f64 };
        cost
    }
}
