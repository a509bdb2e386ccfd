//! A model that cannot go back, as one with recurrent state cannot.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use futures::future::{FutureExt, LocalBoxFuture, ready};
use setun::{
    forward::{Batch, MemoryUse, Model, ModelError, Outputs, PagedCache, SequenceId},
    ops::OpsError,
};

/// Refuses a row that does not follow the last one of its sequence, and counts the rows for which
/// the head runs alone.
pub struct ForwardOnly {
    model: Box<dyn Model>,
    next: HashMap<SequenceId, usize>,
    heads: Arc<AtomicUsize>,
}

impl ForwardOnly {
    /// Over a model.
    #[must_use]
    pub fn new(model: Box<dyn Model>) -> Self {
        Self { model, next: HashMap::new(), heads: Arc::default() }
    }

    /// Where the rows are counted.
    #[must_use]
    pub fn heads(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.heads)
    }

    /// A sequence that is new, or has been forked, begins anywhere.
    fn check(&mut self, batch: &Batch) -> Result<(), ModelError> {
        for row in &batch.rows {
            let next = self.next.entry(row.sequence).or_insert(row.position);
            if *next != row.position {
                let what = "a position that the state has passed";
                let (expected, found) = (*next, row.position);
                return Err(OpsError::Inputs { what, expected, found }.into());
            }
            *next += 1;
        }
        Ok(())
    }
}

impl Model for ForwardOnly {
    fn vocab_size(&self) -> usize {
        self.model.vocab_size()
    }

    fn context_length(&self) -> usize {
        self.model.context_length()
    }

    fn block_positions(&self) -> usize {
        self.model.block_positions()
    }

    fn block_bytes(&self) -> usize {
        self.model.block_bytes()
    }

    fn max_rows(&self) -> usize {
        self.model.max_rows()
    }

    fn memory(&self) -> MemoryUse {
        self.model.memory()
    }

    fn forward<'a>(
        &'a mut self,
        batch: &'a Batch,
        cache: &'a mut PagedCache,
        outputs: &'a mut Outputs,
    ) -> LocalBoxFuture<'a, Result<(), ModelError>> {
        match self.check(batch) {
            Ok(()) => self.model.forward(batch, cache, outputs),
            Err(error) => ready(Err(error)).boxed_local(),
        }
    }

    fn head_logits<'a>(
        &'a mut self,
        rows: &'a [usize],
        outputs: &'a mut Outputs,
    ) -> LocalBoxFuture<'a, Result<(), ModelError>> {
        self.heads.fetch_add(rows.len(), Ordering::Relaxed);
        self.model.head_logits(rows, outputs)
    }
}
