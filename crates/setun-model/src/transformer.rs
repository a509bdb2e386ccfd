//! A decoder of any family on any backend.

mod builder;

use std::collections::BTreeMap;

pub use builder::TransformerBuilder;
use futures::future::{FutureExt, LocalBoxFuture};
use setun_checkpoint::ModelConfig;
use setun_ops::{
    Backend, BufferId, CacheElement, CacheSpec, OpsError, Plan, WeightId, best::BestRequest,
};

use crate::{
    batch::Batch,
    cache::PagedCache,
    error::ModelError,
    layout::Layout,
    model::{MaybeSend, MemoryUse, Model},
    outputs::Outputs,
    plan::{HeadOutput, ModelPlan, model_plan},
    profile::{Profile, Profiler},
    step_inputs::StepInputs,
    weights::Weights,
};

/// Positions of a cache block, unless another number is asked for.
pub const BLOCK_POSITIONS: usize = 32;

/// Rows of the largest step.
pub const MAX_ROWS: usize = 512;

/// Blocks that a cache grows by at least.
const GROWTH: usize = 8;

/// Prepared steps that are kept, each with buffers of its own.
const KEPT_STEPS: usize = 12;

/// Least capacity of a ranked row; others are powers of two.
const LEAST_CAPACITY: usize = 16;

/// Choices that do not belong to the checkpoint.
#[derive(Clone, Copy, Debug)]
pub struct TransformerOptions {
    /// Element type of the cache.
    pub cache_element: CacheElement,
    /// Positions of a cache block.
    pub block_positions: usize,
    /// Whether rows that want no more than their best tokens get just these, from
    /// [`Op::Best`](setun_ops::Op::Best). Otherwise they get all logits.
    pub ranked: bool,
}

impl Default for TransformerOptions {
    fn default() -> Self {
        Self { cache_element: CacheElement::F16, block_positions: BLOCK_POSITIONS, ranked: false }
    }
}

/// A decoder: weights in a backend, the cache's memory, and a plan for each number of rows.
pub struct Transformer<B: Backend> {
    backend: B,
    config: ModelConfig,
    layout: Layout,
    weights: Vec<B::Weight>,
    weight_bytes: Vec<usize>,
    positions: usize,
    spec: CacheSpec,
    cache: B::Cache,
    cache_blocks: usize,
    ranked: bool,
    steps: BTreeMap<Key, Step<B>>,
    inputs: StepInputs,
    clock: u64,               // of steps
    profile: Option<Profile>, // of the last step, where steps are timed
}

/// Buckets of rows and wanted rows, and what the head is to give.
type Key = (usize, usize, HeadOutput);

struct Step<B: Backend> {
    prepared: B::Prepared,
    output: BufferId,
    used: u64,
    profiler: Option<Profiler>,
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
        let mut builder = TransformerBuilder::new(backend, config, layout, options)?;
        for (id, weight) in (0..).map(WeightId).zip(data) {
            builder.add(id, weight)?;
        }
        builder.finish()
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &ModelConfig {
        &self.config
    }

    /// The backend.
    #[must_use]
    pub fn backend(&self) -> &B {
        &self.backend
    }

    /// The backend, to be changed between steps.
    pub fn backend_mut(&mut self) -> &mut B {
        &mut self.backend
    }

    /// The plan of a step with so many rows, for inspection.
    ///
    /// # Errors
    ///
    /// As [`model_plan`].
    pub fn plan(&self, rows: usize, wanted: usize, keep: bool) -> Result<ModelPlan, OpsError> {
        self.plan_of((bucket(rows), bucket(wanted), HeadOutput::Logits), keep)
    }

    fn plan_of(&self, (rows, wanted, head): Key, keep: bool) -> Result<ModelPlan, OpsError> {
        let rows = (rows, wanted);
        model_plan(&self.layout, self.config.activation, self.spec, rows, head, keep)
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
        let mut prepared = self.backend.prepare(plan, &self.weights)?;
        self.start(batch, cache)?;
        let inputs = &mut self.inputs.inputs;
        inputs.best.clear(); // the plan gives all logits
        self.backend.run(&mut prepared, &mut self.cache, inputs)?;
        let mut results = vec![];
        for &(buffer, rows) in reads {
            let spec = plan.buffer(buffer);
            let mut out = vec![0; rows * spec.width * spec.kind.element_bytes()];
            self.backend.read(&prepared, buffer, 0..rows, &mut out).await?;
            results.push(out);
        }
        Ok(results)
    }

    /// A step for a bucket; the one that was not used for the longest time makes room for it.
    fn prepare(&mut self, key: Key) -> Result<Step<B>, ModelError> {
        if self.steps.len() >= KEPT_STEPS
            && let Some((&oldest, _)) = self.steps.iter().min_by_key(|(_, step)| step.used)
        {
            self.steps.remove(&oldest);
        }
        let ModelPlan { plan, output, .. } = self.plan_of(key, false)?;
        let mut prepared = self.backend.prepare(&plan, &self.weights)?;
        let is_timed = self.profile.is_some() && self.backend.time(&mut prepared);
        let profiler = is_timed.then(|| Profiler::new(&plan, &self.layout, &self.weight_bytes));
        Ok(Step { prepared, output, used: self.clock, profiler })
    }

    /// Checks the batch, makes its inputs, grows the cache and makes pending copies.
    fn start(&mut self, batch: &Batch, cache: &mut PagedCache) -> Result<(), ModelError> {
        self.inputs.fill(batch, cache)?;
        let blocks = cache.high_water_blocks();
        if blocks > self.cache_blocks {
            let roomy = blocks.max(self.cache_blocks + self.cache_blocks / 2).max(GROWTH);
            self.cache_blocks = if self.backend.grow_cache(&mut self.cache, roomy).is_ok() {
                roomy
            } else {
                self.backend.grow_cache(&mut self.cache, blocks)?;
                blocks
            };
        }
        if !cache.copies().is_empty() {
            self.backend.copy_blocks(&mut self.cache, cache.copies())?;
            cache.copies_made();
        }
        Ok(())
    }

    async fn step(
        &mut self,
        batch: &Batch,
        cache: &mut PagedCache,
        outputs: &mut Outputs,
    ) -> Result<(), ModelError> {
        self.start(batch, cache)?;
        let inputs = &mut self.inputs.inputs;
        let wanted = inputs.wanted.len();
        let head = if self.ranked && inputs.best.len() == wanted {
            let tokens = inputs.best.iter().map(BestRequest::tokens).max().unwrap_or(0);
            HeadOutput::Best { capacity: tokens.max(LEAST_CAPACITY).next_power_of_two() }
        } else {
            inputs.best.clear();
            HeadOutput::Logits
        };
        let key = (bucket(inputs.rows()), bucket(wanted), head);
        let step = match self.steps.remove(&key) {
            Some(step) => step,
            None => self.prepare(key)?,
        };
        let step = self.steps.entry(key).or_insert(step);
        let inputs = &self.inputs.inputs;
        self.clock += 1;
        step.used = self.clock;
        self.backend.run(&mut step.prepared, &mut self.cache, inputs)?;
        if let (Some(profile), Some(profiler)) = (&mut self.profile, &step.profiler)
            && let Some(times) = self.backend.times(&step.prepared)
        {
            profiler.write(times, inputs, profile);
        }
        let out: &mut [u8] = match head {
            HeadOutput::Logits => {
                bytemuck::cast_slice_mut(outputs.logits_mut(wanted, self.config.vocab_size))
            }
            HeadOutput::Best { capacity } => {
                bytemuck::cast_slice_mut(outputs.ranked_mut(wanted, capacity))
            }
        };
        self.backend.read(&step.prepared, step.output, 0..wanted, out).await?;
        Ok(())
    }
}

impl<B> Model for Transformer<B>
where
    B: Backend + MaybeSend,
    B::Weight: MaybeSend,
    B::Prepared: MaybeSend,
    B::Cache: MaybeSend,
{
    fn vocab_size(&self) -> usize {
        self.config.vocab_size
    }

    fn context_length(&self) -> usize {
        self.positions
    }

    fn block_positions(&self) -> usize {
        self.spec.block_positions
    }

    fn block_bytes(&self) -> usize {
        self.spec.block_bytes()
    }

    fn max_rows(&self) -> usize {
        MAX_ROWS
    }

    fn memory(&self) -> MemoryUse {
        let head = self.weight_bytes[self.layout.head.0 as usize];
        MemoryUse {
            body: self.weight_bytes.iter().sum::<usize>() - head,
            head,
            screen: self.weights.iter().map(|weight| self.backend.bytes_beside(weight)).sum(),
            cache: self.cache_blocks * self.spec.block_bytes(),
        }
    }

    fn forward<'a>(
        &'a mut self,
        batch: &'a Batch,
        cache: &'a mut PagedCache,
        outputs: &'a mut Outputs,
    ) -> LocalBoxFuture<'a, Result<(), ModelError>> {
        self.step(batch, cache, outputs).boxed_local()
    }

    fn set_profiled(&mut self, profiled: bool) {
        if profiled != self.profile.is_some() {
            self.steps.clear(); // those to come are made ready the other way
        }
        self.profile = profiled.then(Profile::default);
    }

    fn profile(&self) -> Option<&Profile> {
        self.profile.as_ref().filter(|profile| profile.steps > 0)
    }
}

/// Rows of the plan that serves a step: the next power of two, so that steps of similar size
/// share a plan and its buffers.
fn bucket(rows: usize) -> usize {
    rows.max(1).next_power_of_two()
}
