//! A model for tests that ranks the logits of another, which now and then does not suffice.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use futures::future::{FutureExt, LocalBoxFuture, ready};
use setun_model::{
    Batch, MemoryUse, Model, ModelError, Outputs, PagedCache, RequestedOutput, SequenceId,
};
use setun_ops::{
    DenseMatrix, OpsError,
    dense::DenseValues,
    top_logits::{Ranked, TopLogitsRequest, top_logits_row},
};

use crate::fake_model::{FakeModel, lost_device};

/// Gives few logits where all rows of a step want few, by the definition. A third of the rows has
/// none then, and which they are follows from their logits.
pub(crate) struct RankingModel {
    model: FakeModel,
    /// All of the last step, where it ranked them.
    logits: Outputs,
    /// Rows for which the head ran alone.
    pub(crate) heads: Arc<AtomicUsize>,
    /// Rows after which the head loses its device.
    fails_at: Option<usize>,
    /// The next position of each sequence, if no position may come again.
    next: Option<HashMap<SequenceId, usize>>,
}

/// True if few logits of a row do not suffice.
fn is_undecided(logits: &[f32]) -> bool {
    (logits[0] * 65536.0).to_bits().count_ones().is_multiple_of(3)
}

impl RankingModel {
    pub(crate) fn new(model: FakeModel) -> Self {
        let (logits, heads) = (Outputs::default(), Arc::default());
        Self { model, logits, heads, fails_at: None, next: None }
    }

    /// The same, which refuses to compute a position twice.
    pub(crate) fn forward_only(mut self) -> Self {
        self.next = Some(HashMap::new());
        self
    }

    /// The same, whose head loses its device once it has run for this many rows.
    pub(crate) fn losing(mut self, after: usize) -> Self {
        self.fails_at = Some(after);
        self
    }

    fn check(&mut self, batch: &Batch) {
        let Some(next) = &mut self.next else { return };
        for row in &batch.rows {
            let next = next.entry(row.sequence).or_insert(row.position);
            assert_eq!(row.position, *next, "a position that was passed");
            *next += 1;
        }
    }

    fn rank(&mut self, batch: &Batch, outputs: &mut Outputs) -> Result<(), ModelError> {
        let vocabulary = self.model.vocabulary;
        let requests: Option<Vec<&TopLogitsRequest>> = batch
            .rows
            .iter()
            .filter(|row| row.output != RequestedOutput::Nothing)
            .map(|row| match &row.output {
                RequestedOutput::TopLogits(request) => Some(request),
                _ => None,
            })
            .collect();
        let Some(requests) = requests else {
            let logits = std::mem::take(&mut self.logits);
            let all = outputs.logits_mut(batch.wanted(), vocabulary)?;
            all.copy_from_slice(logits.logits());
            return Ok(());
        };
        let capacity = requests.iter().map(|request| request.entries()).max().unwrap_or(1);
        let ranked = outputs.ranked_mut(requests.len(), capacity)?.chunks_exact_mut(capacity);
        let rows = self.logits.logits().chunks_exact(vocabulary);
        for ((request, ranked), logits) in requests.into_iter().zip(ranked).zip(rows) {
            let values = DenseValues::F32(logits.to_vec().into());
            let table = DenseMatrix::new(vocabulary, 1, values)?;
            if is_undecided(logits) {
                ranked.fill(Ranked::PADDING);
            } else {
                top_logits_row(&table, &[1.0], request, ranked);
            }
        }
        Ok(())
    }

    fn run_head(&mut self, rows: &[usize], outputs: &mut Outputs) -> Result<(), ModelError> {
        assert!(rows.is_sorted_by(|a, b| a < b), "each row once, in order: {rows:?}");
        let number = self.heads.fetch_add(rows.len(), Ordering::Relaxed);
        if self.fails_at.is_some_and(|after| number >= after) {
            return Err(lost_device());
        }
        let vocabulary = self.model.vocabulary;
        let logits = outputs.logits_mut(rows.len(), vocabulary)?.chunks_exact_mut(vocabulary);
        for (&row, logits) in rows.iter().zip(logits) {
            let all = self.logits.logits().chunks_exact(vocabulary).nth(row);
            let what = "a row that was ranked";
            let none = OpsError::Inputs { what, expected: 0, found: row };
            logits.copy_from_slice(all.ok_or(none)?);
        }
        Ok(())
    }
}

impl Model for RankingModel {
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
        self.check(batch);
        async move {
            self.model.forward(batch, cache, &mut self.logits).await?;
            self.rank(batch, outputs)
        }
        .boxed_local()
    }

    fn head_logits<'a>(
        &'a mut self,
        rows: &'a [usize],
        outputs: &'a mut Outputs,
    ) -> LocalBoxFuture<'a, Result<(), ModelError>> {
        ready(self.run_head(rows, outputs)).boxed_local()
    }

    fn shrink<'a>(
        &'a mut self,
        cache: &'a mut PagedCache,
    ) -> LocalBoxFuture<'a, Result<(), ModelError>> {
        self.model.shrink(cache)
    }
}
