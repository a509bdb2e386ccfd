//! A decoder of any family on any backend.

mod multi_step;

use futures::future::{FutureExt, LocalBoxFuture, ready};
use setun_checkpoint::ModelConfig;
use setun_ops::{Backend, BlockId, BufferId, OpsError, Plan, StateId, WeightId};

use crate::{
    batch::Batch,
    cache::PagedCache,
    error::ModelError,
    layer_range::LayerRange,
    model::{MaybeSendBackend, MemoryUse, Model},
    options::{MAX_ROWS, TransformerOptions},
    outputs::Outputs,
    plan::{HeadOutput, ModelPlan},
    profile::Profile,
    split::DynStage,
    stage::{Stage, StageBuilder, bucket, head_output},
    step_inputs::StepInputs,
    weights::Weights,
};

/// A decoder: all layers of a model on one backend.
pub struct Transformer<B: Backend> {
    stage: Stage<B>,
    inputs: StepInputs,
}

/// From a stage that has all layers.
impl<B: Backend> From<Stage<B>> for Transformer<B> {
    fn from(stage: Stage<B>) -> Self {
        Self { stage, inputs: StepInputs::default() }
    }
}

impl<B: Backend> Transformer<B> {
    /// Moves the weights into the backend, one by one.
    ///
    /// # Errors
    ///
    /// If the backend refuses one, or has no memory for it.
    pub fn new(
        backend: B,
        config: ModelConfig,
        weights: Weights,
        options: TransformerOptions,
    ) -> Result<Self, ModelError> {
        let Weights { layout, data, .. } = weights;
        let whole = LayerRange::whole(layout.layers.len());
        let mut builder = StageBuilder::new(backend, config, &layout, whole, options)?;
        for (id, weight) in (0..).map(WeightId).zip(data) {
            builder.add(id, weight)?;
        }
        builder.finish().map(Self::from)
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &ModelConfig {
        &self.stage.config
    }

    /// The backend.
    #[must_use]
    pub fn backend(&self) -> &B {
        &self.stage.backend
    }

    /// The backend, to be changed between steps.
    pub fn backend_mut(&mut self) -> &mut B {
        &mut self.stage.backend
    }

    /// The plan of a step with this many rows, for inspection.
    ///
    /// # Errors
    ///
    /// As [`model_plan`](crate::plan::model_plan).
    pub fn plan(&self, rows: usize, wanted: usize, keep: bool) -> Result<ModelPlan, OpsError> {
        self.stage.plan((bucket(rows), bucket(wanted), HeadOutput::Logits), keep)
    }

    /// Runs one step of a plan made by the caller, and lets it read any buffer.
    ///
    /// # Errors
    ///
    /// As [`Model::forward`].
    pub async fn forward_with_taps(
        &mut self,
        plan: &Plan,
        batch: &Batch,
        cache: &mut PagedCache,
        reads: &[(BufferId, usize)], // buffer and rows
    ) -> Result<Vec<Vec<u8>>, ModelError> {
        let mut prepared = self.stage.backend.prepare(plan, &self.stage.weights)?;
        self.start(batch, cache, 1)?;
        let inputs = &mut self.inputs.inputs;
        inputs.top_logits.clear(); // the plan gives all logits
        inputs.argmax.clear();
        let Stage { backend, cache: memory, .. } = &mut self.stage;
        cache.step_runs();
        backend.run(&mut prepared, memory, inputs)?;
        cache.step_done();
        let mut results = vec![];
        for &(buffer, rows) in reads {
            let spec = plan.buffer(buffer);
            let mut out = vec![0; rows * spec.width * spec.kind.element_bytes()];
            backend.read(&prepared, buffer, 0..rows, &mut out).await?;
            results.push(out);
        }
        Ok(results)
    }

    /// Checks the batch, makes its inputs, grows the cache and makes pending copies.
    fn start(
        &mut self,
        batch: &Batch,
        cache: &mut PagedCache,
        steps: usize,
    ) -> Result<(), ModelError> {
        self.inputs.fill(batch, cache, steps)?;
        self.stage.forget_head_rows();
        let blocks = (cache.high_water_blocks(), cache.max_blocks_beside_states());
        self.stage.grow_and_copy(blocks, cache.copies())?;
        self.stage.grow_states(cache.high_water_states())?;
        self.stage.copy_states(cache.state_copies())?;
        cache.copies_made();
        Ok(())
    }

    async fn step(
        &mut self,
        batch: &Batch,
        cache: &mut PagedCache,
        outputs: &mut Outputs,
    ) -> Result<(), ModelError> {
        self.start(batch, cache, 1)?;
        let head = head_output(&mut self.inputs, self.stage.ranked);
        let inputs = &self.inputs.inputs;
        let wanted = inputs.wanted.len();
        let ModelConfig { vocab_size, hidden_size, .. } = self.stage.config;
        let out: &mut [u8] = match head {
            HeadOutput::TopLogits { capacity } => {
                bytemuck::cast_slice_mut(outputs.ranked_mut(wanted, capacity)?)
            }
            HeadOutput::States => {
                bytemuck::cast_slice_mut(outputs.states_mut(wanted, hidden_size)?)
            }
            _ => bytemuck::cast_slice_mut(outputs.logits_mut(wanted, vocab_size)?),
        };
        cache.step_runs();
        let step = self.stage.run(inputs, head, &[], 1)?;
        self.stage.read(step, wanted, out).await?;
        cache.step_done();
        Ok(())
    }

    async fn run_head(&mut self, rows: &[usize], outputs: &mut Outputs) -> Result<(), ModelError> {
        let logits = outputs.logits_mut(rows.len(), self.stage.config.vocab_size)?;
        let step = self.stage.profile.clone();
        self.stage.head_logits(rows, bytemuck::cast_slice_mut(logits)).await?;
        Profile::follow(&mut self.stage.profile, step);
        Ok(())
    }
}

impl<B: MaybeSendBackend> Model for Transformer<B> {
    fn vocab_size(&self) -> usize {
        self.stage.config.vocab_size
    }

    fn context_length(&self) -> usize {
        self.stage.positions
    }

    fn block_positions(&self) -> usize {
        self.stage.spec.block_positions
    }

    fn block_bytes(&self) -> usize {
        self.stage.spec.block_bytes()
    }

    fn state_bytes(&self) -> usize {
        self.stage.spec.state_bytes()
    }

    fn max_tentative(&self) -> usize {
        self.stage.spec.recurrent.map_or(usize::MAX, |recurrent| recurrent.tentative)
    }

    fn max_rows(&self) -> usize {
        MAX_ROWS
    }

    fn memory(&self) -> MemoryUse {
        self.stage.memory()
    }

    fn forward<'a>(
        &'a mut self,
        batch: &'a Batch,
        cache: &'a mut PagedCache,
        outputs: &'a mut Outputs,
    ) -> LocalBoxFuture<'a, Result<(), ModelError>> {
        self.step(batch, cache, outputs).boxed_local()
    }

    fn head_logits<'a>(
        &'a mut self,
        rows: &'a [usize],
        outputs: &'a mut Outputs,
    ) -> LocalBoxFuture<'a, Result<(), ModelError>> {
        self.run_head(rows, outputs).boxed_local()
    }

    fn max_multi_steps(&self) -> usize {
        if self.stage.spec.recurrent.is_some() {
            return 0; // which states a step reads and writes comes from the host
        }
        let most = self.stage.backend.max_multi_steps();
        if self.stage.is_profiled() { most.min(1) } else { most }
    }

    fn run_multi_step<'a>(
        &'a mut self,
        batch: &'a Batch,
        cache: &'a mut PagedCache,
        steps: usize,
        tokens: &'a mut Vec<u32>,
    ) -> LocalBoxFuture<'a, Result<(), ModelError>> {
        self.multi_step(batch, cache, steps, tokens).boxed_local()
    }

    fn read_blocks<'a>(
        &'a mut self,
        blocks: &'a [BlockId],
        out: &'a mut [u8],
    ) -> LocalBoxFuture<'a, Result<bool, ModelError>> {
        let Stage { backend, cache, .. } = &mut self.stage;
        async move {
            backend.read_blocks(cache, blocks, out).await?;
            Ok(true)
        }
        .boxed_local()
    }

    fn read_states<'a>(
        &'a mut self,
        states: &'a [StateId],
        out: &'a mut [u8],
    ) -> LocalBoxFuture<'a, Result<(), ModelError>> {
        let Stage { backend, cache, .. } = &mut self.stage;
        async move { Ok(backend.read_states(cache, states, out).await?) }.boxed_local()
    }

    fn write_states(
        &mut self,
        high_water_states: usize,
        states: &[StateId],
        data: &[u8],
    ) -> Result<(), ModelError> {
        self.stage.grow_states(high_water_states)?;
        let Stage { backend, cache, .. } = &mut self.stage;
        Ok(backend.write_states(cache, states, data)?)
    }

    fn write_blocks(
        &mut self,
        high_water_blocks: usize,
        blocks: &[BlockId],
        data: &[u8],
    ) -> Result<bool, ModelError> {
        self.stage.grow_and_copy((high_water_blocks, high_water_blocks), &[])?;
        let Stage { backend, cache, .. } = &mut self.stage;
        backend.write_blocks(cache, blocks, data)?;
        Ok(true)
    }

    fn shrink<'a>(
        &'a mut self,
        cache: &'a mut PagedCache,
    ) -> LocalBoxFuture<'a, Result<(), ModelError>> {
        let shrunk = self.stage.shrink(cache.high_water_blocks(), cache.copies());
        let shrunk = shrunk.and_then(|()| self.stage.copy_states(cache.state_copies()));
        let shrunk = shrunk.and_then(|()| self.stage.shrink_states(cache.high_water_states()));
        if shrunk.is_ok() {
            cache.copies_made();
        }
        ready(shrunk).boxed_local()
    }

    fn set_profiled(&mut self, profiled: bool) {
        self.stage.set_profiled(profiled);
    }

    fn profile(&self) -> Option<&Profile> {
        self.stage.profile()
    }
}
