//! The draft model of a scheduler, which proposes tokens for its sequences.

use setun_model::{MemoryUse, Model, SequenceId};
use setun_text::{Sampler, SamplerOptions};

use crate::{
    error::{Error, ErrorCode},
    parts::ReloadModel,
    speculation::{DraftModel, DraftRequest, DraftRoom},
};

/// Rows that a draft runs before a step, beyond those of what it proposes: a long prompt is not
/// to hold up everybody's tokens.
pub(super) const MAX_DRAFTED_ROWS: usize = 256;

/// How often the beginnings that pass before a lost draft is tried again are doubled at most.
const MAX_DOUBLINGS: u32 = 6;

/// A model that guesses for all sequences that request it.
pub(crate) struct DraftModelRunner {
    draft: Option<DraftModel>, // none while its device is lost
    room: DraftRoom,
    max_blocks: usize, // that the room had at first
    block_positions: usize,
    block_bytes: usize,
    /// Loads it again where its device is lost.
    reload: Option<Box<dyn ReloadModel>>,
    /// How often in a row that has failed, and beginnings since.
    failures: u32,
    passed: u32,
    /// It failed, or memory is short: it guesses nothing until what is under way has ended.
    is_paused: bool,
}

impl DraftModelRunner {
    /// Over a model of the scheduler's vocabulary, whose cache may have this many blocks, this many of them
    /// for texts that begin as others did.
    pub(crate) fn new(
        model: Box<dyn Model>,
        blocks: usize,
        prefix_blocks: usize,
        reload: Option<Box<dyn ReloadModel>>,
    ) -> Result<Self, Error> {
        let room = DraftRoom { blocks, prefix_blocks, rows: MAX_DRAFTED_ROWS };
        Ok(Self {
            block_positions: model.block_positions().max(1),
            block_bytes: model.block_bytes(),
            draft: Some(draft(model, room)?),
            room,
            max_blocks: blocks,
            reload,
            failures: 0,
            passed: 0,
            is_paused: false,
        })
    }

    pub(super) fn memory(&self) -> MemoryUse {
        self.draft.as_ref().map(DraftModel::memory).unwrap_or_default()
    }

    /// Whether it guesses nothing now.
    pub(super) fn is_paused(&self) -> bool {
        self.is_paused || self.draft.is_none()
    }

    /// Forgets the sequences that are not there any more.
    pub(super) fn retain(&mut self, is_there: impl Fn(SequenceId) -> bool) {
        if let Some(draft) = &mut self.draft {
            draft.retain(is_there);
        }
    }

    /// Forgets all sequences: their names will be others'.
    pub(super) fn forget_all(&mut self) {
        self.retain(|_| false);
    }

    /// Nothing is under way: whatever it rested for may be over.
    pub(super) fn reset(&mut self) {
        self.forget_all();
        self.is_paused = false;
    }

    pub(super) fn has_spare(&self) -> bool {
        self.draft.as_ref().is_some_and(DraftModel::has_spare)
    }

    /// Gives back what no sequence needs; all of its cache where memory is very short.
    pub(super) async fn release_memory(&mut self, is_critical: bool) {
        self.is_paused |= is_critical;
        if is_critical {
            self.forget_all();
        }
        if let Some(draft) = &mut self.draft {
            self.is_paused |= draft.shrink().await.is_err();
        }
    }

    /// Bytes of its cache for this many positions.
    pub(super) fn cache_bytes(&self, positions: usize) -> usize {
        self.blocks(positions).saturating_mul(self.block_bytes)
    }

    /// Holds its cache to this many positions from now on, or to what it had at first.
    pub(super) async fn hold_to(&mut self, positions: usize) {
        self.room.blocks = self.blocks(positions).min(self.max_blocks);
        if let Some(draft) = &mut self.draft {
            self.is_paused |= draft.hold_to(self.room.blocks).await.is_err();
        }
    }

    fn blocks(&self, positions: usize) -> usize {
        positions.div_ceil(self.block_positions)
    }

    /// The guesses for each request; none where it fails, which it then does not try again soon.
    pub(super) async fn propose(&mut self, requests: &[DraftRequest<'_>]) -> Option<Vec<Vec<u32>>> {
        match self.draft.as_mut()?.propose(requests).await {
            Ok(proposed) => Some(proposed),
            Err(error) => {
                self.forget_all();
                self.is_paused = true;
                if error.code() == ErrorCode::DeviceLost {
                    self.lose_device();
                }
                None
            }
        }
    }

    /// Forgets its device, which is lost.
    pub(super) fn lose_device(&mut self) {
        self.draft = None;
    }

    /// What loads it again, if it is lost.
    pub(super) fn reload(&mut self) -> Option<&mut dyn ReloadModel> {
        if self.draft.is_some() {
            return None;
        }
        self.reload.as_mut().map(|reload| &mut **reload as _)
    }

    /// Whether to try that with what begins now, which waits for it: with the next beginning after
    /// one failure, with every second after two, and so on.
    pub(super) fn is_reload_due(&mut self) -> bool {
        self.passed += 1;
        self.passed >= 1 << self.failures.saturating_sub(1).min(MAX_DOUBLINGS)
    }

    /// It is there again, or is not.
    pub(super) fn reloaded(&mut self, model: Result<Box<dyn Model>, Error>) {
        self.draft = model.and_then(|model| draft(model, self.room)).ok();
        self.failures = if self.draft.is_some() { 0 } else { self.failures.saturating_add(1) };
        self.passed = 0;
    }
}

/// Where a sequence's sampler has a state it chooses the best tokens.
fn draft(model: Box<dyn Model>, room: DraftRoom) -> Result<DraftModel, Error> {
    let greedy = SamplerOptions { temperature: 0.0, ..SamplerOptions::default() };
    Ok(DraftModel::within(model, Sampler::new(greedy)?, room))
}
