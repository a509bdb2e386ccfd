//! Some layers of a model, or all, on a backend.

mod builder;
mod head;

use std::collections::BTreeMap;

pub use builder::StageBuilder;
pub(crate) use builder::wrong_weight;
use setun_checkpoint::ModelConfig;
#[cfg(not(target_family = "wasm"))]
use setun_ops::image::WeightBytes;
use setun_ops::{
    Backend, BatchInputs, BufferId, CacheSpec, HAS_RECURRENT, OpsError, StateId,
    top_logits::TopLogitsRequest,
};

use self::head::HeadRows;
use crate::{
    error::ModelError,
    layer_range::LayerRange,
    layout::Layout,
    plan::{HeadOutput, ModelPlan, part_plan},
    profile::{Profile, Profiler},
    step_inputs::StepInputs,
};

/// Prepared steps that are kept, each with buffers of its own.
const KEPT_STEPS: usize = 12;

/// Least capacity of a ranked row, and of a choice's tokens; others are powers of two.
const MIN_CAPACITY: usize = 16;

/// A [`LayerRange`] of a model: its weights in a backend, the cache of its layers, and a plan for each
/// number of rows.
pub struct Stage<B: Backend> {
    pub(crate) backend: B,
    pub(crate) config: ModelConfig,
    pub(crate) part: LayerRange,
    pub(crate) layout: Layout,
    pub(crate) weights: Vec<B::Weight>,
    pub(crate) positions: usize,
    pub(crate) spec: CacheSpec,
    pub(crate) cache: B::Cache,
    pub(crate) ranked: RankedRows,
    pub(crate) weight_bytes: Vec<usize>,
    pub(crate) cache_blocks: usize,
    pub(crate) states: usize,
    pub(crate) steps: BTreeMap<Key, PreparedStep<B>>,
    clock: u64,                          // of steps
    pub(crate) profile: Option<Profile>, // of the last step, where steps are timed
    head: HeadRows,
}

/// Rows that get no more than their best tokens, if that is all that they want.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RankedRows {
    /// None.
    None,
    /// Those whose best tokens are the ones with the highest logits.
    ByLogit,
    /// All of them.
    All,
}

/// Buckets of rows and requested rows, and how the plan ends.
pub(crate) type Key = (usize, usize, HeadOutput);

/// A step that is ready to run.
pub(crate) struct PreparedStep<B: Backend> {
    prepared: B::Prepared,
    input: Option<BufferId>,
    output: BufferId,
    normed: Option<BufferId>,
    used: u64,
    profiler: Option<Profiler>, // once it was to be timed
    is_timed: bool,
}

impl<B: Backend> Stage<B> {
    /// Its weights in order, with all that was made for them, to be [adopted](StageBuilder::adopt)
    /// again; none where weights do not leave the backend.
    #[cfg(not(target_family = "wasm"))]
    #[must_use]
    pub fn images(&self) -> Option<Vec<WeightBytes<'_>>> {
        self.weights.iter().map(|weight| self.backend.image(weight)).collect()
    }

    pub(crate) fn plan(
        &self,
        (rows, wanted, head): Key,
        keep: bool,
    ) -> Result<ModelPlan, OpsError> {
        let (activation, rows) = (self.config.activation, (rows, wanted));
        part_plan(&self.layout, self.part, activation, self.spec, rows, head, keep)
    }

    /// A step for a bucket; the one that was not used for the longest time makes room for it.
    fn prepare(&mut self, key: Key) -> Result<PreparedStep<B>, ModelError> {
        if self.steps.len() >= KEPT_STEPS
            && let Some((&oldest, _)) = self.steps.iter().min_by_key(|(_, step)| step.used)
        {
            self.steps.remove(&oldest);
        }
        let ModelPlan { plan, input, output, normed, .. } = self.plan(key, false)?;
        let prepared = self.backend.prepare(&plan, &self.weights)?;
        let used = self.clock;
        Ok(PreparedStep { prepared, input, output, normed, used, profiler: None, is_timed: false })
    }

    /// Has a step timed, or no longer.
    fn time(&mut self, key: Key, step: &mut PreparedStep<B>) -> Result<(), ModelError> {
        step.is_timed = self.is_profiled();
        if self.backend.time(&mut step.prepared, step.is_timed) && step.profiler.is_none() {
            let plan = self.plan(key, false)?.plan;
            step.profiler = Some(Profiler::new(&plan, &self.layout, &self.weight_bytes));
        }
        Ok(())
    }

    /// Queues a step over the hidden states that come in, none where it begins with tokens, or so
    /// many that follow each other. It is read before the next one begins.
    pub(crate) fn run(
        &mut self,
        inputs: &BatchInputs,
        head: HeadOutput,
        hidden: &[f32],
        steps: usize,
    ) -> Result<Key, ModelError> {
        let key = (bucket(inputs.rows()), bucket(inputs.wanted.len()), head);
        let mut step = match self.steps.remove(&key) {
            Some(step) => step,
            None => self.prepare(key)?,
        };
        if step.is_timed != self.is_profiled() {
            self.time(key, &mut step)?;
        }
        let step = self.steps.entry(key).or_insert(step);
        self.clock += 1;
        step.used = self.clock;
        if let Some(input) = step.input {
            let bytes = bytemuck::cast_slice(hidden);
            self.backend.write(&mut step.prepared, input, 0..inputs.rows(), bytes)?;
        }
        self.backend.run_multi_step(&mut step.prepared, &mut self.cache, inputs, steps)?;
        if let (Some(profile), Some(profiler)) = (&mut self.profile, &step.profiler)
            && let Some(times) = self.backend.times(&step.prepared)
        {
            profiler.write(times, inputs, profile);
        }
        if let HeadOutput::TopLogits { .. } = head {
            self.head.unread = Some((key, inputs.wanted.len()));
        }
        Ok(key)
    }

    /// What the last step gave in this many rows.
    pub(crate) async fn read(
        &mut self,
        key: Key,
        rows: usize,
        out: &mut [u8],
    ) -> Result<(), ModelError> {
        if let Some(step) = self.steps.get(&key) {
            self.backend.read(&step.prepared, step.output, 0..rows, out).await?;
        }
        Ok(())
    }

    /// Grows the recurrent states to this many.
    pub(crate) fn grow_states(&mut self, states: usize) -> Result<(), ModelError> {
        if states > self.states {
            self.backend.grow_states(&mut self.cache, states)?;
            self.states = states;
        }
        Ok(())
    }

    /// Copies the recurrent states that are there. A stage that only attends has none.
    pub(crate) fn copy_states(&mut self, pairs: &[(StateId, StateId)]) -> Result<(), ModelError> {
        if !HAS_RECURRENT || pairs.is_empty() || self.spec.recurrent.is_none() {
            return Ok(());
        }
        let is_there = |state: StateId| (state.0 as usize) < self.states;
        let pairs = pairs.iter().copied().filter(|&(from, to)| is_there(from) && is_there(to));
        Ok(self.backend.copy_states(&mut self.cache, &pairs.collect::<Vec<_>>())?)
    }

    /// Gives back the memory of the recurrent states from `states` on.
    pub(crate) fn shrink_states(&mut self, states: usize) -> Result<(), ModelError> {
        self.backend.shrink_states(&mut self.cache, states)?;
        self.states = self.states.min(states);
        Ok(())
    }

    pub(crate) fn is_profiled(&self) -> bool {
        self.profile.is_some()
    }
}

/// Rows of the plan that serves a step: the next power of two, so that steps of similar size
/// share a plan and its buffers.
pub(crate) fn bucket(rows: usize) -> usize {
    rows.max(1).next_power_of_two()
}

impl RankedRows {
    /// Whether the rows of these requests get their best tokens.
    fn serves(self, requests: &[TopLogitsRequest]) -> bool {
        match self {
            Self::None => false,
            Self::ByLogit => requests.iter().all(|request| request.noise.is_none()),
            Self::All => true,
        }
    }
}

/// What the head is to give for the requested rows of a step. Their requests are dropped where one
/// of them needs all logits.
pub(crate) fn head_output(step: &mut StepInputs, ranked: RankedRows) -> HeadOutput {
    let inputs = &mut step.inputs;
    inputs.argmax.clear();
    if step.wants_states {
        HeadOutput::States
    } else if inputs.top_logits.len() == inputs.wanted.len() && ranked.serves(&inputs.top_logits) {
        let entries = inputs.top_logits.iter().map(TopLogitsRequest::entries).max().unwrap_or(0);
        HeadOutput::TopLogits { capacity: room(entries) }
    } else {
        inputs.top_logits.clear();
        HeadOutput::Logits
    }
}

/// Room for this many tokens of a row, so that steps of similar requests share a plan.
pub(crate) fn room(tokens: usize) -> usize {
    tokens.max(MIN_CAPACITY).next_power_of_two()
}
