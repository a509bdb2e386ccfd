//! The `Model` trait: a model as an engine sees it.

use futures::future::{FutureExt, LocalBoxFuture, ready};
use setun_ops::{Backend, BlockId, OpsError, StateId};

use crate::{
    batch::Batch, cache::PagedCache, error::ModelError, outputs::Outputs, profile::Profile,
};

/// `Send` where there are threads; nothing in WebAssembly, where a GPU's handles are not.
#[cfg(not(target_family = "wasm"))]
pub trait MaybeSend: Send {}
#[cfg(not(target_family = "wasm"))]
impl<T: Send + ?Sized> MaybeSend for T {}

/// `Send` where there are threads; nothing in WebAssembly, where a GPU's handles are not.
#[cfg(target_family = "wasm")]
pub trait MaybeSend {}
#[cfg(target_family = "wasm")]
impl<T: ?Sized> MaybeSend for T {}

/// A backend whose values are `Send` where there are threads.
pub trait MaybeSendBackend:
    Backend<Weight: MaybeSend, Prepared: MaybeSend, Cache: MaybeSend> + MaybeSend
{
}
impl<B> MaybeSendBackend for B where
    B: Backend<Weight: MaybeSend, Prepared: MaybeSend, Cache: MaybeSend> + MaybeSend
{
}

/// Bytes of memory that a model keeps from step to step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// The weights but for the head, as they were uploaded: a backend may pad them.
    pub body: usize,
    /// The head's table in the form in which it is kept; where it is tied, the embedding's too.
    pub head: usize,
    /// What is kept beside weights so that less of them is read: the head's screen.
    pub screen: usize,
    /// The KV cache, as far as it has grown.
    pub cache: usize,
}

impl MemoryUse {
    /// All but the cache.
    #[must_use]
    pub fn weights(&self) -> usize {
        self.body + self.head + self.screen
    }

    /// Adds other memory.
    pub fn add(&mut self, other: &Self) {
        self.body += other.body;
        self.head += other.head;
        self.screen += other.screen;
        self.cache += other.cache;
    }

    /// All of it.
    #[must_use]
    pub fn sum(&self) -> usize {
        self.weights() + self.cache
    }
}

/// Logits for batches of tokens over a paged cache.
///
/// The engine is written against this trait alone, so that a model of another kind (an n-gram
/// model, say) runs through the same streams. A model keeps whatever it wants for each block of
/// the cache, and makes the copies that [`PagedCache::copies`] names before it writes.
///
/// Logits must not depend on what else is in the batch or on how a prompt is cut: batching and
/// speculation rest on it.
pub trait Model: MaybeSend {
    /// Number of tokens, and of logits of a row.
    fn vocab_size(&self) -> usize;

    /// Most positions of a sequence.
    fn context_length(&self) -> usize;

    /// Positions in a block of the cache.
    fn block_positions(&self) -> usize;

    /// Bytes of memory for one block.
    fn block_bytes(&self) -> usize;

    /// Bytes of memory for the recurrent state of a sequence; 0 where it has none.
    fn state_bytes(&self) -> usize {
        0
    }

    /// Blocks that a recurrent state counts as.
    fn state_blocks(&self) -> usize {
        self.state_bytes().div_ceil(self.block_bytes().max(1))
    }

    /// Most rows at the end of a step that a recurrent state lets a caller take back.
    fn max_tentative(&self) -> usize {
        usize::MAX
    }

    /// Most rows of a step.
    fn max_rows(&self) -> usize;

    /// What is kept in memory now.
    fn memory(&self) -> MemoryUse;

    /// Runs one step and writes the outputs of the requested rows, in order, to `outputs`. If one
    /// of them wants all logits, all get theirs.
    ///
    /// # Errors
    ///
    /// If a row does not fit its sequence, or the backend fails. The cache's contents at the
    /// step's positions are then undefined; earlier ones are kept.
    fn forward<'a>(
        &'a mut self,
        batch: &'a Batch,
        cache: &'a mut PagedCache,
        outputs: &'a mut Outputs,
    ) -> LocalBoxFuture<'a, Result<(), ModelError>>;

    /// Runs the head alone, over all rows of its table, for rows of the last step whose
    /// [`TopLogits`](crate::RequestedOutput::TopLogits) did not suffice: their numbers among the requested rows.
    /// Writes all their logits to `outputs`, `[rows, vocab]`: those that the step would have given.
    /// A model that gives all logits to whoever wants some need not have it. One that gives
    /// [`Row::Ranked`](crate::Row::Ranked) must: an undecided row would end all generations.
    ///
    /// # Errors
    ///
    /// If the last step did not rank these rows, or the backend fails. The cache is as it was.
    fn head_logits<'a>(
        &'a mut self,
        rows: &'a [usize],
        _outputs: &'a mut Outputs,
    ) -> LocalBoxFuture<'a, Result<(), ModelError>> {
        ready(Err(not_ranked(rows.len()))).boxed_local()
    }

    /// Most greedy steps that [`run_multi_step`](Self::run_multi_step) runs one after the other; 0 where tokens
    /// are chosen from logits.
    fn max_multi_steps(&self) -> usize {
        0
    }

    /// Runs `steps` steps, each row of the later ones taking in the token that it chose before,
    /// and writes the tokens to `tokens`, `[steps, wanted rows]`; [`NONE`] where the logits of a
    /// row are not finite. All rows that want anything choose, and of several steps these are all
    /// rows, each of another sequence, which has been extended by as many positions.
    ///
    /// [`NONE`]: setun_ops::argmax::NONE
    ///
    /// # Errors
    ///
    /// As [`forward`](Self::forward); also if that cannot be done.
    fn run_multi_step<'a>(
        &'a mut self,
        _batch: &'a Batch,
        _cache: &'a mut PagedCache,
        steps: usize,
        _tokens: &'a mut Vec<u32>,
    ) -> LocalBoxFuture<'a, Result<(), ModelError>> {
        let what = "steps that choose tokens";
        let refused = OpsError::Inputs { what, expected: 0, found: steps };
        ready(Err(refused.into())).boxed_local()
    }

    /// Copies what it keeps for blocks out, [`block_bytes`](Self::block_bytes) each. False, and
    /// nothing is written, where a model does not give that away.
    ///
    /// # Errors
    ///
    /// If a block was never written to, or the device fails.
    fn read_blocks<'a>(
        &'a mut self,
        _blocks: &'a [BlockId],
        _out: &'a mut [u8],
    ) -> LocalBoxFuture<'a, Result<bool, ModelError>> {
        ready(Ok(false)).boxed_local()
    }

    /// Copies blocks in, as [`read_blocks`](Self::read_blocks) gave them, after growing to
    /// `high_water_blocks`. False where a model does not take them.
    ///
    /// # Errors
    ///
    /// If the data is of another size, memory runs out, or the device fails.
    fn write_blocks(
        &mut self,
        _high_water_blocks: usize,
        _blocks: &[BlockId],
        _data: &[u8],
    ) -> Result<bool, ModelError> {
        Ok(false)
    }

    /// Copies recurrent states out, [`state_bytes`](Self::state_bytes) each.
    ///
    /// # Errors
    ///
    /// If a state was never written to, or the device fails.
    fn read_states<'a>(
        &'a mut self,
        _states: &'a [StateId],
        _out: &'a mut [u8],
    ) -> LocalBoxFuture<'a, Result<(), ModelError>> {
        ready(Err(OpsError::NoStates.into())).boxed_local()
    }

    /// Copies recurrent states in, as [`read_states`](Self::read_states) gave them, after growing to
    /// `high_water_states`.
    ///
    /// # Errors
    ///
    /// If the data is of another size, memory runs out, or the device fails.
    fn write_states(
        &mut self,
        _high_water_states: usize,
        _states: &[StateId],
        _data: &[u8],
    ) -> Result<(), ModelError> {
        Err(OpsError::NoStates.into())
    }

    /// Makes the copies that [`PagedCache::copies`] names, and gives back the memory of the blocks
    /// beyond [`PagedCache::high_water_blocks`] and what is kept ready for steps. A model may as
    /// well do nothing, as here: the copies are then made before it writes.
    ///
    /// # Errors
    ///
    /// If the device fails. The contents of the cache are then undefined.
    fn shrink<'a>(
        &'a mut self,
        _cache: &'a mut PagedCache,
    ) -> LocalBoxFuture<'a, Result<(), ModelError>> {
        ready(Ok(())).boxed_local()
    }

    /// Has the steps from now on timed, op by op, where that is possible; or no longer.
    fn set_profiled(&mut self, _profiled: bool) {}

    /// Where the time of the last step went; none unless steps are timed.
    fn profile(&self) -> Option<&Profile> {
        None
    }
}

impl PagedCache {
    /// An empty cache for a model, of at most `max_blocks` blocks, some of which its recurrent states count as.
    #[must_use]
    pub fn for_model<M: Model + ?Sized>(model: &M, max_blocks: usize) -> Self {
        let mut cache = Self::new(model.block_positions().max(1), max_blocks);
        cache.keep_states(model.state_blocks());
        cache
    }

    /// The same with room for the recurrent states of this many sequences beside the blocks.
    #[must_use]
    pub fn for_sequences<M: Model + ?Sized>(model: &M, blocks: usize, sequences: usize) -> Self {
        Self::for_model(model, blocks + sequences * model.state_blocks())
    }
}

/// The error of a head that was to run alone for rows that the last step did not rank.
pub(crate) fn not_ranked(found: usize) -> ModelError {
    OpsError::Inputs { what: "rows for the head alone", expected: 0, found }.into()
}
