//! Running tokens of several sequences in steps that a model can take.

use setun_model::{
    Batch, BatchRow, Model, ModelError, Outputs, PagedCache, RequestedOutput, Row, SequenceId,
};
use setun_ops::OpsError;

use crate::error::Error;

/// Most logits of a step: 64 MiB of them. Steps with more are cut, which changes no bit.
const MAX_LOGITS: usize = 1 << 24;

/// Tokens to be run at the end of a sequence.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run<'a> {
    pub(crate) sequence: SequenceId,
    /// Of the first token: what the sequence has so far.
    pub(crate) position: usize,
    pub(crate) tokens: &'a [u32],
    /// The logits of the tokens from this one on are requested.
    pub(crate) wanted_from: usize,
}

/// A model, its memory and the step that is put together.
pub(crate) struct Steps<'a> {
    model: &'a mut dyn Model,
    pool: &'a mut PagedCache,
    outputs: &'a mut Outputs,
    batch: Batch,
    wanted: Vec<(usize, usize)>, // number of a run and place in it, for each requested row
}

impl<'a> Steps<'a> {
    pub(crate) fn new(
        model: &'a mut dyn Model,
        pool: &'a mut PagedCache,
        outputs: &'a mut Outputs,
    ) -> Self {
        Self { model, pool, outputs, batch: Batch::default(), wanted: vec![] }
    }

    /// Runs all of them in as few steps as may be. `take` is handed the number of a run, a place
    /// in it and the logits there: run after run, and in each in order. The sequences have grown
    /// by the runs then; if one fails, by nothing.
    pub(crate) async fn run(
        mut self,
        runs: &[Run<'_>],
        mut take: impl FnMut(usize, usize, &[f32]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let result = self.try_run(runs, &mut take).await;
        if result.is_err() {
            for run in runs {
                self.pool.truncate(run.sequence, run.position)?;
            }
        }
        result
    }

    async fn try_run(
        &mut self,
        runs: &[Run<'_>],
        take: &mut impl FnMut(usize, usize, &[f32]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        for run in runs {
            if let Some(blocks) = self.pool.lacks_memory(run.sequence, run.tokens.len())? {
                self.pool.compact_for(blocks);
                self.model.shrink(self.pool).await?;
            }
            self.pool.extend(run.sequence, run.tokens.len())?;
        }
        let max_rows = self.model.max_rows().max(1);
        let max_wanted = max_wanted_rows(self.model);
        for (index, run) in runs.iter().enumerate() {
            for (offset, &token) in run.tokens.iter().enumerate() {
                if self.batch.rows.len() == max_rows || self.wanted.len() == max_wanted {
                    self.step(take).await?;
                }
                let (position, sequence) = (run.position + offset, run.sequence);
                let is_wanted = offset >= run.wanted_from;
                let output =
                    if is_wanted { RequestedOutput::Logits } else { RequestedOutput::Nothing };
                self.batch.rows.push(BatchRow { token, position, sequence, output });
                if is_wanted {
                    self.wanted.push((index, offset));
                }
            }
        }
        self.step(take).await
    }

    /// Runs what was put together.
    async fn step(
        &mut self,
        take: &mut impl FnMut(usize, usize, &[f32]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if self.batch.rows.is_empty() {
            return Ok(());
        }
        self.model.forward(&self.batch, self.pool, self.outputs).await?;
        self.batch.rows.clear();
        let mut rows = self.outputs.rows();
        for (run, offset) in self.wanted.drain(..) {
            match rows.next() {
                Some(Row::Logits(logits)) => take(run, offset, logits)?,
                Some(Row::Ranked(_) | Row::HiddenState(_)) | None => return Err(no_logits().into()),
            }
        }
        Ok(())
    }
}

/// Most rows of a step that all want their logits.
pub(crate) fn max_wanted_rows(model: &dyn Model) -> usize {
    let most = MAX_LOGITS / model.vocab_size().max(1);
    most.clamp(1, model.max_rows().max(1))
}

/// A model gave less than was requested.
fn no_logits() -> ModelError {
    OpsError::Inputs { what: "rows with all logits", expected: 1, found: 0 }.into()
}
