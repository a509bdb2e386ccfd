//! A model that guesses for all sequences that ask for it.

use setun_model::{MemoryUse, Model, SequenceId};
use setun_text::{Sampler, SamplerOptions};

use crate::{
    device::Revive,
    error::Error,
    speculate::{Draft, DraftModel, DraftRequest, DraftRoom},
};

/// Rows that a draft runs before a step, beyond those of what it proposes: a long prompt is not
/// to hold up everybody's tokens.
pub(super) const MOST_DRAFTED_ROWS: usize = 256;

/// A model that guesses for all sequences that ask for it.
pub(crate) struct Drafter {
    draft: DraftModel,
    room: DraftRoom,
    most_blocks: usize, // that the room had at first
    /// Makes it anew where its device is lost with the owner's.
    revival: Option<Box<dyn Revive>>,
    /// It failed, or memory is short: it guesses nothing until what is under way has ended.
    rests: bool,
}

/// What is left of one whose device is lost.
pub(super) struct LostDrafter {
    revival: Box<dyn Revive>,
    room: DraftRoom,
    most_blocks: usize,
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
        Ok(Self { draft: draft(model, room)?, room, most_blocks: blocks, revival, rests: false })
    }

    /// Forgets its device, which is lost.
    pub(super) fn lost(self) -> Option<LostDrafter> {
        let Self { room, most_blocks, .. } = self;
        Some(LostDrafter { revival: self.revival?, room, most_blocks })
    }

    pub(super) fn memory(&self) -> MemoryUse {
        self.draft.memory()
    }

    /// Whether it guesses nothing now.
    pub(super) fn rests(&self) -> bool {
        self.rests
    }

    /// Forgets the sequences that are not there any more.
    pub(super) fn retain(&mut self, is_there: impl Fn(SequenceId) -> bool) {
        self.draft.retain(is_there);
    }

    /// Forgets all sequences: their names will be others'.
    pub(super) fn forget_all(&mut self) {
        self.draft.retain(|_| false);
    }

    /// Nothing is under way: whatever it rested for may be over.
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

    /// Bytes of its cache for so many positions.
    pub(super) fn cache_bytes(&self, positions: usize) -> usize {
        self.draft.blocks(positions).saturating_mul(self.draft.block_bytes())
    }

    /// Holds its cache to so many positions from now on, or to what it had at first.
    pub(super) async fn hold_to(&mut self, positions: usize) {
        self.room.blocks = self.draft.blocks(positions).min(self.most_blocks);
        self.rests |= self.draft.hold_to(self.room.blocks).await.is_err();
    }

    /// The guesses for each request; none where it fails, which it then does not try again soon.
    pub(super) async fn propose(&mut self, requests: &[DraftRequest<'_>]) -> Option<Vec<Vec<u32>>> {
        let proposed = self.draft.propose(requests).await;
        if proposed.is_err() {
            self.forget_all();
            self.rests = true;
        }
        Some(proposed.ok()?.into_iter().map(|proposal| proposal.tokens).collect())
    }
}

impl LostDrafter {
    pub(super) fn revival(&mut self) -> &mut dyn Revive {
        &mut *self.revival
    }

    pub(super) fn revived(self, model: Box<dyn Model>) -> Result<Drafter, Error> {
        let Self { revival, room, most_blocks } = self;
        let (draft, revival) = (draft(model, room)?, Some(revival));
        Ok(Drafter { draft, room, most_blocks, revival, rests: false })
    }
}

/// Where a sequence's sampler has a state it chooses the best tokens.
fn draft(model: Box<dyn Model>, room: DraftRoom) -> Result<DraftModel, Error> {
    let greedy = SamplerOptions { temperature: 0.0, ..SamplerOptions::default() };
    Ok(DraftModel::within(model, Sampler::new(greedy)?, room))
}
