//! What an engine needs of a model.

use futures::future::LocalBoxFuture;

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

    /// Most rows of a step.
    fn max_rows(&self) -> usize;

    /// Runs one step and writes what the wanted rows asked for, in order, to `outputs`. If one
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

    /// Has the steps from now on timed, op by op, where that is possible; or no longer.
    fn set_profiled(&mut self, _profiled: bool) {}

    /// Where the time of the last step went; none unless steps are timed.
    fn profile(&self) -> Option<&Profile> {
        None
    }
}
