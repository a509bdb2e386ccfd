//! A draft of known quality: it has the text, and is right as often as it is told.

use std::sync::{Arc, Mutex, PoisonError};

use futures::future::{FutureExt, LocalBoxFuture, ready};
use setun::{
    forward::{
        Batch, BatchRow, MemoryUse, Model, ModelError, Outputs, PagedCache, RequestedOutput,
    },
    ops::top_logits::Ranked,
};

use crate::synth::{noise, share};

/// Seed of what it gets wrong.
const SEED: u64 = 1;

/// Positions in a block of its cache, which holds nothing.
const BLOCK_POSITIONS: usize = 32;

/// Most rows of a step.
const MAX_ROWS: usize = 512;

/// Proposes the tokens of one text after another, some of them wrong.
pub(super) struct KnownDraft {
    vocabulary: usize,
    context: usize,
    text: SharedText,
}

/// The text that is proposed, which can be changed between generations.
pub(super) type SharedText = Arc<Mutex<KnownText>>;

/// Prompt and generated tokens, and how often one of them is proposed.
#[derive(Debug, Default)]
pub(super) struct KnownText {
    pub(super) tokens: Vec<u32>,
    pub(super) rate: f64,
}

impl KnownDraft {
    /// For a target with this many tokens and positions.
    pub(super) fn new(vocabulary: usize, context: usize, text: SharedText) -> Self {
        Self { vocabulary, context, text }
    }

    /// The token after a position. Which positions are wrong depends on nothing but the place.
    fn after(&self, position: usize) -> u32 {
        let text = self.text.lock().unwrap_or_else(PoisonError::into_inner);
        let right = text.tokens.get(position + 1).copied().unwrap_or(0);
        let is_right = share(noise(SEED, position as u64)) < text.rate;
        if is_right || self.vocabulary < 2 {
            return right;
        }
        if right == 0 { 1 } else { right - 1 }
    }

    fn write(&self, batch: &Batch, outputs: &mut Outputs) -> Result<(), ModelError> {
        let wanted = batch.rows.iter().filter(|row| row.output != RequestedOutput::Nothing);
        let tokens = wanted.map(|row| self.after(row.position));
        if batch.rows.iter().any(is_of_all) {
            let logits = outputs.logits_mut(batch.wanted(), self.vocabulary)?;
            logits.fill(0.0);
            for (token, row) in tokens.zip(logits.chunks_exact_mut(self.vocabulary)) {
                row[token as usize] = 1.0;
            }
            return Ok(());
        }
        let ranked = outputs.ranked_mut(batch.wanted(), 1)?;
        for (token, ranked) in tokens.zip(ranked) {
            *ranked = Ranked { token, logit: 1.0 };
        }
        Ok(())
    }
}

/// Whether a row wants more than the best logit.
fn is_of_all(row: &BatchRow) -> bool {
    match &row.output {
        RequestedOutput::Nothing => false,
        RequestedOutput::TopLogits(request) => request.entries() > 1,
        _ => true,
    }
}

impl Model for KnownDraft {
    fn vocab_size(&self) -> usize {
        self.vocabulary
    }

    fn context_length(&self) -> usize {
        self.context
    }

    fn block_positions(&self) -> usize {
        BLOCK_POSITIONS
    }

    fn block_bytes(&self) -> usize {
        0
    }

    fn max_rows(&self) -> usize {
        MAX_ROWS
    }

    fn memory(&self) -> MemoryUse {
        MemoryUse::default()
    }

    fn forward<'a>(
        &'a mut self,
        batch: &'a Batch,
        cache: &'a mut PagedCache,
        outputs: &'a mut Outputs,
    ) -> LocalBoxFuture<'a, Result<(), ModelError>> {
        cache.copies_made();
        ready(self.write(batch, outputs)).boxed_local()
    }
}
