//! A backend with something done before what it does: to make it fail or wait.

use std::{future::poll_fn, ops::Range, task::Poll};

use setun::ops::{
    Backend, BatchInputs, BlockId, BufferId, CacheSpec, OpsError, Plan, Usage, WeightData,
    backend::StepTimes,
};

/// What a backend is about to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// To make a step ready for this many rows.
    Prepare(usize),
    /// To run a step of this many rows.
    Run(usize),
    /// To give a step's results.
    Read,
    /// To grow a cache to this many blocks.
    Grow(usize),
    /// To shrink a cache to this many blocks.
    Shrink(usize),
    /// To copy this many blocks.
    Copy(usize),
}

/// Called before each call, which it may make fail.
pub type Hook = Box<dyn FnMut(Call) -> Result<(), OpsError> + Send>;

/// A backend that calls a [`Hook`] with what it is about to do. Its results are not ready at once.
pub struct Hooked<B> {
    backend: B,
    hook: Hook,
}

impl<B> Hooked<B> {
    /// Calls `hook` from now on.
    pub fn new(
        backend: B,
        hook: impl FnMut(Call) -> Result<(), OpsError> + Send + 'static,
    ) -> Self {
        Self { backend, hook: Box::new(hook) }
    }
}

impl<B: Backend> Backend for Hooked<B> {
    type Weight = B::Weight;
    type Prepared = B::Prepared;
    type Cache = B::Cache;

    fn upload(&mut self, weight: WeightData, usage: Usage) -> Result<B::Weight, OpsError> {
        self.backend.upload(weight, usage)
    }

    fn bytes_beside(&self, weight: &B::Weight) -> usize {
        self.backend.bytes_beside(weight)
    }

    fn prepare(&mut self, plan: &Plan, weights: &[B::Weight]) -> Result<B::Prepared, OpsError> {
        (self.hook)(Call::Prepare(plan.rows()))?;
        self.backend.prepare(plan, weights)
    }

    fn write(
        &mut self,
        step: &mut B::Prepared,
        buffer: BufferId,
        rows: Range<usize>,
        data: &[u8],
    ) -> Result<(), OpsError> {
        self.backend.write(step, buffer, rows, data)
    }

    fn run(
        &mut self,
        step: &mut B::Prepared,
        cache: &mut B::Cache,
        inputs: &BatchInputs,
    ) -> Result<(), OpsError> {
        (self.hook)(Call::Run(inputs.rows()))?;
        self.backend.run(step, cache, inputs)
    }

    async fn finish(
        &mut self,
        step: &mut B::Prepared,
        cache: &mut B::Cache,
        inputs: &BatchInputs,
    ) -> Result<(), OpsError> {
        self.backend.finish(step, cache, inputs).await
    }

    fn takes_noise(&self) -> bool {
        self.backend.takes_noise()
    }

    fn time(&mut self, step: &mut B::Prepared, is_timed: bool) -> bool {
        self.backend.time(step, is_timed)
    }

    fn times<'a>(&self, step: &'a B::Prepared) -> Option<StepTimes<'a>> {
        self.backend.times(step)
    }

    async fn read(
        &mut self,
        step: &B::Prepared,
        buffer: BufferId,
        rows: Range<usize>,
        out: &mut [u8],
    ) -> Result<(), OpsError> {
        (self.hook)(Call::Read)?;
        not_at_once().await;
        self.backend.read(step, buffer, rows, out).await
    }

    fn create_cache(&mut self, spec: &CacheSpec, blocks: usize) -> Result<B::Cache, OpsError> {
        self.backend.create_cache(spec, blocks)
    }

    fn grow_cache(&mut self, cache: &mut B::Cache, blocks: usize) -> Result<(), OpsError> {
        (self.hook)(Call::Grow(blocks))?;
        self.backend.grow_cache(cache, blocks)
    }

    fn shrink_cache(&mut self, cache: &mut B::Cache, blocks: usize) -> Result<(), OpsError> {
        (self.hook)(Call::Shrink(blocks))?;
        self.backend.shrink_cache(cache, blocks)
    }

    fn copy_blocks(
        &mut self,
        cache: &mut B::Cache,
        pairs: &[(BlockId, BlockId)],
    ) -> Result<(), OpsError> {
        (self.hook)(Call::Copy(pairs.len()))?;
        self.backend.copy_blocks(cache, pairs)
    }

    async fn read_blocks(
        &mut self,
        cache: &B::Cache,
        blocks: &[BlockId],
        out: &mut [u8],
    ) -> Result<(), OpsError> {
        self.backend.read_blocks(cache, blocks, out).await
    }

    fn write_blocks(
        &mut self,
        cache: &mut B::Cache,
        blocks: &[BlockId],
        data: &[u8],
    ) -> Result<(), OpsError> {
        self.backend.write_blocks(cache, blocks, data)
    }
}

/// Is ready when it is asked again.
async fn not_at_once() {
    let mut is_ready = false;
    poll_fn(|context| {
        context.waker().wake_by_ref();
        if std::mem::replace(&mut is_ready, true) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}
