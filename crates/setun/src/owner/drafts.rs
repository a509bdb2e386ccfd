//! Tokens that are guessed to come next: from a text itself, or by a smaller model beside the one
//! that is owned. The step verifies them, so nothing that happens to a draft changes a text.

use setun_model::{MemoryUse, Model};
use setun_text::{Sampler, SamplerOptions};

use super::{Owner, Running};
use crate::{
    device::Revive,
    error::Error,
    inferencer::most_wanted_rows,
    speculate::{Draft, DraftModel, DraftRequest, DraftRoom},
};

/// Rows that a draft runs before a step, beyond those of what it proposes: a long prompt is not
/// to hold up everybody's tokens.
pub(super) const MOST_DRAFTED_ROWS: usize = if cfg!(target_arch = "wasm32") { 32 } else { 256 };

/// A model that guesses for all sequences that ask for it.
pub(crate) struct Drafter {
    draft: DraftModel,
    room: DraftRoom,
    /// Makes it anew where its device is lost with the owner's.
    revival: Option<Box<dyn Revive>>,
    /// It failed, or memory is short: it guesses nothing until nothing runs.
    rests: bool,
}

/// What is left of one whose device is lost.
pub(super) struct LostDrafter {
    pub(super) revival: Box<dyn Revive>,
    room: DraftRoom,
}

impl Drafter {
    /// Over a model of the owner's vocabulary, whose cache may have so many blocks, so many of them
    /// for texts that begin as others did.
    pub(crate) fn new(
        model: Box<dyn Model>,
        blocks: usize,
        prefix_blocks: usize,
        revival: Option<Box<dyn Revive>>,
    ) -> Result<Self, Error> {
        let room = DraftRoom { blocks, prefix_blocks, rows: MOST_DRAFTED_ROWS };
        Ok(Self { draft: draft(model, room)?, room, revival, rests: false })
    }

    /// Forgets its device, which is lost.
    pub(super) fn lost(self) -> Option<LostDrafter> {
        Some(LostDrafter { revival: self.revival?, room: self.room })
    }

    pub(super) fn memory(&self) -> MemoryUse {
        self.draft.memory()
    }

    /// Forgets all sequences: their names will be others'.
    pub(super) fn forget_all(&mut self) {
        self.draft.retain(|_| false);
    }

    /// Nothing runs: whatever it rested for may be over.
    pub(super) fn begin_again(&mut self) {
        self.forget_all();
        self.rests = false;
    }

    pub(super) fn has_spare(&self) -> bool {
        self.draft.has_spare()
    }

    /// Gives back what no sequence needs; all of its cache where memory is very short.
    pub(super) async fn relieve(&mut self, is_critical: bool) {
        self.rests |= is_critical;
        if is_critical {
            self.forget_all();
        }
        self.rests |= self.draft.shrink().await.is_err();
    }

    /// The guesses for each request; none where it fails, which it then does not try again soon.
    async fn propose(&mut self, requests: &[DraftRequest<'_>]) -> Option<Vec<Vec<u32>>> {
        let proposed = self.draft.propose(requests).await;
        if proposed.is_err() {
            self.forget_all();
            self.rests = true;
        }
        Some(proposed.ok()?.into_iter().map(|proposal| proposal.tokens).collect())
    }
}

impl LostDrafter {
    pub(super) fn revived(self, model: Box<dyn Model>) -> Result<Drafter, Error> {
        let Self { revival, room } = self;
        Ok(Drafter { draft: draft(model, room)?, room, revival: Some(revival), rests: false })
    }
}

/// Where a sequence's sampler has a state it chooses the best tokens.
fn draft(model: Box<dyn Model>, room: DraftRoom) -> Result<DraftModel, Error> {
    let greedy = SamplerOptions { temperature: 0.0, ..SamplerOptions::default() };
    Ok(DraftModel::within(model, Sampler::new(greedy)?, room))
}

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
        if drafter.rests {
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
        drafter.draft.retain(|place| running.iter().any(|running| running.place == place));
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
        self.model.max_rows().min(most_wanted_rows(&*self.model)).saturating_sub(rows)
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
