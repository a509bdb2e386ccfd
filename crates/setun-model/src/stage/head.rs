//! The head alone, for rows whose top logits did not suffice.

use setun_ops::{Backend, BatchInputs, BlockId, numeric::to_u32};

use super::{Key, Stage};
use crate::{error::ModelError, model::not_ranked, plan::HeadOutput};

/// The requested rows of a step as they entered the head. Their memory serves all steps.
#[derive(Debug, Default)]
pub(super) struct HeadRows {
    /// `[rows, hidden]`, those that were read.
    normed: Vec<f32>,
    /// The last step and its number of such rows, until they are read from the backend.
    pub(super) unread: Option<(Key, usize)>,
    /// The head's input rows.
    hidden: Vec<f32>,
    inputs: BatchInputs,
}

impl<B: Backend> Stage<B> {
    /// Another step begins.
    pub(crate) fn forget_head_rows(&mut self) {
        self.head.normed.clear();
        self.head.unread = None;
    }

    /// Reads the rows that ran last before others take their place: plans may share their memory.
    pub(crate) async fn keep_head_rows(&mut self) -> Result<(), ModelError> {
        let Self { backend, steps, head, config, .. } = self;
        if let Some((key, rows)) = head.unread.take()
            && let Some(step) = steps.get(&key)
            && let Some(normed) = step.normed
        {
            let first = head.normed.len();
            head.normed.resize(first + rows * config.hidden_size, 0.0);
            let out = bytemuck::cast_slice_mut(&mut head.normed[first..]);
            backend.read(&step.prepared, normed, 0..rows, out).await?;
        }
        Ok(())
    }

    /// All logits of some rows of the step, `[rows, vocab]`.
    pub(crate) async fn head_logits(
        &mut self,
        rows: &[usize],
        out: &mut [u8],
    ) -> Result<(), ModelError> {
        self.keep_head_rows().await?;
        let width = self.config.hidden_size;
        let ranked = self.head.normed.len() / width;
        if rows.iter().any(|row| *row >= ranked) {
            return Err(not_ranked(rows.len()));
        }
        let mut head = std::mem::take(&mut self.head);
        head.hidden.clear();
        for row in rows {
            head.hidden.extend_from_slice(&head.normed[row * width..][..width]);
        }
        head.place(rows.len(), self.spec.block_positions);
        let key = self.run(&head.inputs, HeadOutput::Alone, &head.hidden, 1);
        self.head = head;
        self.read(key?, rows.len(), out).await
    }
}

impl HeadRows {
    /// Inputs of this many rows. Their places are in the cache, as it has one for each row of a
    /// step, and are not looked at.
    fn place(&mut self, rows: usize, block_positions: usize) {
        let inputs = &mut self.inputs;
        inputs.tokens.resize(rows, 0);
        inputs.slots.resize(rows, 0);
        inputs.positions.clear();
        inputs.positions.extend(0..to_u32(rows));
        inputs.block_tables.resize(1, vec![]);
        inputs.block_tables[0].clear();
        inputs.block_tables[0].extend((0..to_u32(rows.div_ceil(block_positions))).map(BlockId));
    }
}
