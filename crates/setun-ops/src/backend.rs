//! The contract of a place where forward passes run.

mod checks;

use std::{future::Future, ops::Range, time::Duration};

#[cfg(not(target_family = "wasm"))]
use crate::image::{Adopted, MappedWeight, WeightBytes};
use crate::{
    batch_inputs::BatchInputs,
    cache::{BlockId, CacheSpec},
    error::OpsError,
    op::BufferId,
    plan::Plan,
    recurrent::StateId,
    weight::{Usage, WeightData},
};
pub use checks::{check_multi_step, check_read, check_step, check_weights, check_write};

/// A place where forward passes run.
///
/// A step is data: a [`Plan`] made once for each number of rows, and [`BatchInputs`] for each
/// step. A backend interprets, walks or records the plan as it likes; it gets
/// nothing else, which lets one model description drive a thread team and a GPU's queue.
///
/// Weights and caches are made by a backend and given back to the same one; a backend may
/// panic on another's. Futures carry no `Send` bound: a browser's GPU handles are not `Send`.
pub trait Backend {
    /// A weight in this backend's memory, packed as it prefers. Clones share the memory.
    type Weight: Clone;
    /// A plan made ready: buffers allocated, pipelines or launches recorded.
    type Prepared;
    /// The memory of a paged KV cache.
    type Cache;
    /// Whether weights leave this backend as [images](Self::image).
    const HAS_IMAGES: bool = false;

    /// Moves one weight in. Called weight by weight, so that a model is never held twice.
    fn upload(&mut self, weight: WeightData, usage: Usage) -> Result<Self::Weight, OpsError>;

    /// Bytes that are kept beside a weight to serve it faster, as a screen beside a table.
    fn bytes_beside(&self, _weight: &Self::Weight) -> usize {
        0
    }

    /// What a weight is kept as, with all that was made for it, for a file that other processes
    /// map; none where there are no images.
    #[cfg(not(target_family = "wasm"))]
    fn image<'a>(&self, _weight: &'a Self::Weight) -> Option<WeightBytes<'a>> {
        None
    }

    /// Takes a weight back from an [image](Self::image), whose parts stay where they are.
    ///
    /// # Errors
    ///
    /// If it is no image of a weight of this backend and for this usage, or there are none. Values
    /// are not looked at: they are trusted to be those that were written.
    #[cfg(not(target_family = "wasm"))]
    fn adopt(
        &mut self,
        _image: MappedWeight,
        _usage: Usage,
    ) -> Result<Adopted<Self::Weight>, OpsError> {
        Err(OpsError::NoImages)
    }

    /// Allocates all that `plan` needs; steps allocate nothing. `weights[i]` is
    /// [`WeightId`](crate::WeightId)`(i)`.
    fn prepare(
        &mut self,
        plan: &Plan,
        weights: &[Self::Weight],
    ) -> Result<Self::Prepared, OpsError>;

    /// Brings rows of an [input](Plan::inputs) of a plan to its memory, for the next run of this
    /// step: `f32`s in the host's byte order, `[rows, width]`. No other step may run between.
    ///
    /// # Errors
    ///
    /// As [`check_write`].
    fn write(
        &mut self,
        step: &mut Self::Prepared,
        buffer: BufferId,
        rows: Range<usize>,
        data: &[u8],
    ) -> Result<(), OpsError>;

    /// Queues one step. Never waits for a device.
    fn run(
        &mut self,
        step: &mut Self::Prepared,
        cache: &mut Self::Cache,
        inputs: &BatchInputs,
    ) -> Result<(), OpsError>;

    /// Most steps that [`run_multi_step`](Self::run_multi_step) takes; 0 where greedy tokens are
    /// better chosen on the host, from logits.
    fn max_multi_steps(&self) -> usize {
        0
    }

    /// Queues `steps` steps of a plan that ends in [`Op::Argmax`](crate::Op::Argmax), with nothing
    /// of the host between them: each takes in what the one before chose, as
    /// [`BatchInputs::advance`] says. Of several, all rows are requested, each of another sequence.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run), and if there are more than [`max_multi_steps`](Self::max_multi_steps).
    fn run_multi_step(
        &mut self,
        step: &mut Self::Prepared,
        cache: &mut Self::Cache,
        inputs: &BatchInputs,
        steps: usize,
    ) -> Result<(), OpsError> {
        if steps == 1 {
            return self.run(step, cache, inputs);
        }
        let what = "multi-step decoding";
        Err(OpsError::Inputs { what, expected: 1, found: steps })
    }

    /// Whether [`Op::TopLogits`](crate::Op::TopLogits) takes requests for tokens by noisy scores.
    fn takes_noise(&self) -> bool {
        true
    }

    /// Whether the next runs of this step are to be timed, op by op. False where none is: the backend
    /// cannot, or it was not requested, and costs nothing more then.
    fn time(&mut self, _step: &mut Self::Prepared, _is_timed: bool) -> bool {
        false
    }

    /// What the last run took and counted; none unless [`time`](Self::time) said that it would
    /// be timed.
    fn times<'a>(&self, _step: &'a Self::Prepared) -> Option<StepTimes<'a>> {
        None
    }

    /// Copies rows of a buffer to the host once they are ready: the only wait.
    ///
    /// A float buffer gives `f32`s in the host's byte order, `[rows, width]`; a quantized one
    /// gives its int8 codes, `[rows, width]`, without padding; a ranked one gives
    /// [`Ranked`](crate::top_logits::Ranked)s, `[rows, width]`; one of chosen tokens gives `u32`s, first
    /// those of the requested rows, then, of steps that followed, the others': `[steps, wanted
    /// rows]`.
    fn read(
        &mut self,
        step: &Self::Prepared,
        buffer: BufferId,
        rows: Range<usize>,
        out: &mut [u8],
    ) -> impl Future<Output = Result<(), OpsError>>;

    /// A cache of `blocks` blocks, all zero.
    fn create_cache(&mut self, spec: &CacheSpec, blocks: usize) -> Result<Self::Cache, OpsError>;

    /// Adds blocks, so that there are `blocks` of them; those there keep their contents.
    fn grow_cache(&mut self, cache: &mut Self::Cache, blocks: usize) -> Result<(), OpsError>;

    /// Gives back the memory of all blocks but the first `blocks`, which keep their contents.
    /// Where a device has no room to move them, some of the memory may stay until the cache grows.
    ///
    /// # Errors
    ///
    /// If the device fails; the cache's contents are then undefined.
    fn shrink_cache(&mut self, cache: &mut Self::Cache, blocks: usize) -> Result<(), OpsError>;

    /// Adds recurrent states, so that there are `states` of them; those there keep their contents.
    ///
    /// # Errors
    ///
    /// If there is no memory, or the backend has none.
    fn grow_states(&mut self, _cache: &mut Self::Cache, states: usize) -> Result<(), OpsError> {
        if states == 0 { Ok(()) } else { Err(OpsError::NoStates) }
    }

    /// Gives back the memory of all recurrent states but the first `states`.
    ///
    /// # Errors
    ///
    /// As [`shrink_cache`](Self::shrink_cache).
    fn shrink_states(&mut self, _cache: &mut Self::Cache, _states: usize) -> Result<(), OpsError> {
        Ok(())
    }

    /// Copies whole recurrent states `(from, to)` over all layers, in order.
    ///
    /// # Errors
    ///
    /// As [`copy_blocks`](Self::copy_blocks).
    fn copy_states(
        &mut self,
        _cache: &mut Self::Cache,
        pairs: &[(StateId, StateId)],
    ) -> Result<(), OpsError> {
        if pairs.is_empty() { Ok(()) } else { Err(OpsError::NoStates) }
    }

    /// Copies recurrent states out, [`CacheSpec::state_bytes`] each: layer by layer matrices, then
    /// history.
    fn read_states(
        &mut self,
        _cache: &Self::Cache,
        _states: &[StateId],
        _out: &mut [u8],
    ) -> impl Future<Output = Result<(), OpsError>> {
        std::future::ready(Err(OpsError::NoStates))
    }

    /// Copies recurrent states in, as [`read_states`](Self::read_states) wrote them.
    ///
    /// # Errors
    ///
    /// If a state is not here or `data` does not fit.
    fn write_states(
        &mut self,
        _cache: &mut Self::Cache,
        _states: &[StateId],
        _data: &[u8],
    ) -> Result<(), OpsError> {
        Err(OpsError::NoStates)
    }

    /// Copies whole blocks `(from, to)` over all layers, in order: forks and beams.
    fn copy_blocks(
        &mut self,
        cache: &mut Self::Cache,
        pairs: &[(BlockId, BlockId)],
    ) -> Result<(), OpsError>;

    /// Copies blocks out: swapped or saved sequences. For each block
    /// [`CacheSpec::block_bytes`] bytes: layer by layer keys, then values, then, where the
    /// element has them, the scales of the keys and of the values.
    fn read_blocks(
        &mut self,
        cache: &Self::Cache,
        blocks: &[BlockId],
        out: &mut [u8],
    ) -> impl Future<Output = Result<(), OpsError>>;

    /// Copies blocks in, as [`read_blocks`](Self::read_blocks) wrote them.
    fn write_blocks(
        &mut self,
        cache: &mut Self::Cache,
        blocks: &[BlockId],
        data: &[u8],
    ) -> Result<(), OpsError>;
}

/// What one run of a step took, and what it counted on its way.
#[derive(Clone, Copy, Debug)]
pub struct StepTimes<'a> {
    /// Of each op of the plan, in order.
    pub ops: &'a [Duration],
    /// Jobs that a team of threads was given; where it has several, each ends with a barrier.
    pub jobs: usize,
    /// Bytes of its weights that each op did not read, because they could not matter.
    pub unread: &'a [u64],
    /// Of each op of the plan: codes of a `quantize` that are not zero, or gates of a relu²
    /// `gate` that are open, over all rows; 0 of other ops. Empty where it is not counted.
    pub nonzero: &'a [u64],
    /// Of each row of a `top_logits`, the tokens whose exact logits were computed, those
    /// that the row names not counted; none of a row for which the whole head was read. Empty
    /// where nothing is screened.
    pub candidates: &'a [Option<u32>],
}
