//! Where no model guesses for another: a page would have to download both.

use setun_model::{MemoryUse, Model, SequenceId};

use crate::{device::Revive, error::Error, speculate::DraftRequest};

/// There is none.
pub(crate) enum Drafter {}

/// There was none.
pub(super) enum LostDrafter {}

#[expect(clippy::unused_async, reason = "one that is there waits")]
impl Drafter {
    pub(super) fn lost(self) -> Option<LostDrafter> {
        match self {}
    }

    pub(super) fn memory(&self) -> MemoryUse {
        match *self {}
    }

    pub(super) fn rests(&self) -> bool {
        match *self {}
    }

    pub(super) fn forget_all(&mut self) {
        match *self {}
    }

    pub(super) fn begin_again(&mut self) {
        match *self {}
    }

    pub(super) fn has_spare(&self) -> bool {
        match *self {}
    }

    pub(super) async fn relieve(&mut self, _: bool) {
        match *self {}
    }

    pub(super) fn cache_bytes(&self, _: usize) -> usize {
        match *self {}
    }

    pub(super) async fn hold_to(&mut self, _: usize) {
        match *self {}
    }

    pub(super) fn retain(&mut self, _: impl Fn(SequenceId) -> bool) {
        match *self {}
    }

    pub(super) async fn propose(&mut self, _: &[DraftRequest<'_>]) -> Option<Vec<Vec<u32>>> {
        match *self {}
    }
}

impl LostDrafter {
    pub(super) fn revival(&mut self) -> &mut dyn Revive {
        match *self {}
    }

    pub(super) fn revived(self, _: Box<dyn Model>) -> Result<Drafter, Error> {
        match self {}
    }
}
