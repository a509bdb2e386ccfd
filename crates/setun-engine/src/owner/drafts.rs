//! Tokens that are guessed to come next: from a text itself, or by a smaller model beside the one
//! that is owned. The step verifies them, so nothing that happens to a draft changes a text.

use setun_model::MemoryUse;

use super::{Drafter, Owner, Running};
use crate::inferencer::max_wanted_rows;

impl Owner {
    /// Has a smaller model guess in place of the texts themselves.
    pub(crate) fn with_drafter(mut self, drafter: Drafter) -> Self {
        self.drafter = Some(drafter);
        self.metrics.memory = self.memory();
        self
    }

    /// Bytes that the models keep in memory.
    pub(super) fn memory(&self) -> MemoryUse {
        let mut memory = self.model.memory();
        if let Some(drafter) = &self.drafter {
            memory.add(&drafter.memory());
        }
        memory
    }

    /// Guesses tokens for sequences that ask for it, as far as there is room for their logits.
    pub(super) async fn look_ahead(&mut self) {
        self.running.iter_mut().for_each(|running| running.guessed.clear());
        let (cost, drafter) = (self.draft_cost(), self.drafter.take());
        let Some(mut drafter) = drafter else { return self.guess_from_texts() };
        if drafter.rests() {
            self.guess_from_texts();
        } else {
            self.guess_by_draft(&mut drafter, cost).await;
        }
        self.drafter = Some(drafter);
        self.metrics.memory = self.memory();
    }

    fn guess_from_texts(&mut self) {
        let (vocabulary, mut room) = (self.model.vocab_size(), self.guess_room());
        for running in self.running.iter_mut().filter(|running| running.may_look_ahead()) {
            let guessed = running.sequence.guess(room, vocabulary);
            room -= guessed.len();
            running.guessed = running.sequence.look_ahead(guessed, vocabulary);
        }
    }

    async fn guess_by_draft(&mut self, drafter: &mut Drafter, cost: f64) {
        let (vocabulary, mut room) = (self.model.vocab_size(), self.guess_room());
        let mut asked = vec![];
        for (index, running) in self.running.iter_mut().enumerate() {
            if running.may_look_ahead() {
                let count = running.sequence.guesses(room, cost);
                room -= count;
                asked.extend((count > 0).then_some((index, count)));
            }
        }
        let running = &self.running;
        drafter.retain(|place| running.iter().any(|running| running.place == place));
        let request = |&(index, count): &(usize, usize)| {
            let Running { sequence, place, .. } = &running[index];
            sequence.draft_request(*place, count)
        };
        let requests: Vec<_> = asked.iter().map(request).collect();
        let Some(proposed) = drafter.propose(&requests).await else { return };
        for ((index, _), guessed) in asked.into_iter().zip(proposed) {
            let running = &mut self.running[index];
            running.guessed = running.sequence.look_ahead(guessed, vocabulary);
        }
    }

    /// Rows that a step may have for guesses.
    fn guess_room(&self) -> usize {
        let rows: usize = self.running.iter().map(|running| running.rows * running.width()).sum();
        self.model.max_rows().min(max_wanted_rows(&*self.model)).saturating_sub(rows)
    }

    /// A guess costs what a draft's bytes take to be read, beside those of a step.
    fn draft_cost(&self) -> f64 {
        let target = self.model.memory().weights();
        let draft = self.drafter.as_ref().map_or(0, |drafter| drafter.memory().weights());
        #[expect(clippy::cast_precision_loss, reason = "a ratio")]
        let cost = if target == 0 { 0.0 } else { draft as f64 / target as f64 };
        cost
    }
}

impl Running {
    fn may_look_ahead(&self) -> bool {
        self.rows == 1 && self.decodes() && self.sequence.looks_ahead()
    }
}
