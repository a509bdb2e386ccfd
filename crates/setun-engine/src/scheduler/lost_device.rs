//! A stand-in for a model whose device is lost, so that nothing of it is kept in memory while it
//! is made anew.

use futures::future::{FutureExt, LocalBoxFuture, ready};
use setun_model::{Batch, MemoryUse, Model, ModelError, Outputs, PagedCache};
use setun_ops::OpsError;

/// Of the size of the model that it stands for. Every step fails.
pub(super) struct LostDevice {
    vocab_size: usize,
    context_length: usize,
    block_positions: usize,
    block_bytes: usize,
    max_rows: usize,
}

impl LostDevice {
    pub(super) fn like(model: &dyn Model) -> Self {
        Self {
            vocab_size: model.vocab_size(),
            context_length: model.context_length(),
            block_positions: model.block_positions(),
            block_bytes: model.block_bytes(),
            max_rows: model.max_rows(),
        }
    }
}

impl Model for LostDevice {
    fn vocab_size(&self) -> usize {
        self.vocab_size
    }

    fn context_length(&self) -> usize {
        self.context_length
    }

    fn block_positions(&self) -> usize {
        self.block_positions
    }

    fn block_bytes(&self) -> usize {
        self.block_bytes
    }

    fn max_rows(&self) -> usize {
        self.max_rows
    }

    fn memory(&self) -> MemoryUse {
        MemoryUse::default()
    }

    fn forward<'a>(
        &'a mut self,
        _: &'a Batch,
        _: &'a mut PagedCache,
        _: &'a mut Outputs,
    ) -> LocalBoxFuture<'a, Result<(), ModelError>> {
        let reason = "it has not come back since".into();
        ready(Err(OpsError::DeviceLost { reason }.into())).boxed_local()
    }
}
