//! [`setun_ops::Backend`] over any executor.

use std::ops::Range;

use bytemuck::cast_slice;
use setun_ops::{
    Backend, BatchInputs, BlockId, BufferId, CacheSpec, OpsError, Plan, StateId, Usage, WeightData,
    backend::{StepTimes, check_multi_step, check_read, check_weights, check_write},
    plan::BufferKind,
    ternary::padded_columns,
    top_logits::Ranked,
};

use crate::{
    arena::{Arena, MAX_MULTI_STEPS, buffer_bytes},
    cache::GpuCache,
    executor::{Bound, Executor},
    gpu_step::GpuStep,
    kernel::Kernel,
    launch::{Argument, Launch, Launches, chunks},
    lowering::{Fusion, lower},
    recording::{Lists, Recording},
    step_inputs::StepLayout,
    times::Times,
    weight::GpuWeight,
};

/// Runs plans on a device. See the [crate](crate).
#[derive(Debug)]
pub struct GpuBackend<E: Executor> {
    pub(crate) executor: E,
    nothing: E::Buffer,
    arena: Arena<E::Buffer>,
    caches: u64,
    lists: Lists<E::List>,
    pub(crate) fusion: Fusion,
}

impl<E: Executor> GpuBackend<E> {
    /// A backend that plays its launches here.
    ///
    /// # Errors
    ///
    /// If the device has no memory at all.
    pub fn new(mut executor: E) -> Result<Self, OpsError> {
        let nothing = executor.create_buffer("an argument that is not used", 16)?;
        let (arena, lists, fusion) = (Arena::new(), Lists::new(), Fusion::default());
        Ok(Self { executor, nothing, arena, caches: 0, lists, fusion })
    }

    /// Says whether plans prepared from now on share launches.
    #[must_use]
    pub fn with_fusion(mut self, fusion: Fusion) -> Self {
        self.fusion = fusion;
        self
    }

    /// Bytes of memory that steps use, whichever runs.
    #[must_use]
    pub fn step_bytes(&self) -> u64 {
        self.arena.bytes()
    }

    /// What plays the launches.
    #[must_use]
    pub fn executor(&self) -> &E {
        &self.executor
    }

    /// What plays the launches, to be changed.
    #[cfg(feature = "testing")]
    pub fn executor_mut(&mut self) -> &mut E {
        &mut self.executor
    }

    /// Gives back what plays the launches; all else is dropped.
    #[must_use]
    pub fn into_executor(self) -> E {
        self.executor
    }

    pub(crate) fn memory_of(&self, buffer: BufferId) -> Option<E::Buffer> {
        self.arena.buffer(buffer.0 as usize).cloned()
    }

    pub(crate) fn write_inputs(
        &mut self,
        step: &mut GpuStep<E>,
        inputs: &BatchInputs,
    ) -> Result<(), OpsError> {
        step.layout.write(inputs, &mut step.words);
        self.executor.write(&step.inputs, 0, cast_slice(&step.words))
    }

    pub(crate) fn record(
        &mut self,
        step: &GpuStep<E>,
        cache: &GpuCache<E::Buffer>,
        wanted: impl Fn(&Launch) -> bool,
    ) -> Result<E::List, OpsError> {
        let mut bound = vec![];
        for launch in step.launches.list.iter().filter(|launch| wanted(launch)) {
            let mut buffers = vec![step.inputs.clone()];
            for &argument in &launch.arguments {
                buffers.push(self.memory(step, cache, argument)?.clone());
            }
            let Launch { kernel, shape, grid, when, .. } = launch;
            bound.push(Bound { kernel: *kernel, shape, buffers, grid: *grid, when: *when });
        }
        self.executor.record(&bound)
    }

    fn memory<'a>(
        &'a self,
        step: &'a GpuStep<E>,
        cache: &'a GpuCache<E::Buffer>,
        argument: Argument,
    ) -> Result<&'a E::Buffer, OpsError> {
        let memory = match argument {
            Argument::Buffer(id) => self.arena.buffer(id.0 as usize),
            Argument::Scratch(kind) => self.arena.scratch(kind),
            Argument::Weight(id, part) => Some(&step.weights[id.0 as usize].parts[part].buffer),
            Argument::Keys(layer) => Some(&cache.layers[layer][0]),
            Argument::Values(layer) => Some(&cache.layers[layer][1]),
            Argument::Matrices(layer) => cache.states.matrices(layer),
            Argument::History(layer) => cache.states.history(layer),
            Argument::Nothing => Some(&self.nothing),
        };
        memory.ok_or(OpsError::OutOfMemory { what: "a step's buffers", bytes: 0 })
    }

    /// Makes room for a step that was not recorded over the memory as it is.
    fn reserve_for(&mut self, step: &GpuStep<E>) -> Result<(), OpsError> {
        let is_over = |known: &Recording<E::List>, arena| known.arena == arena;
        if !step.recorded.get().as_ref().is_some_and(|known| is_over(known, self.arena.number)) {
            self.reserve(&step.plan, &step.launches)?;
        }
        Ok(())
    }

    /// Makes room for a plan, as it is, or again after memory ran out.
    fn reserve(&mut self, plan: &Plan, launches: &Launches) -> Result<(), OpsError> {
        let buffers = plan.each_buffer().map(|(_, spec, rows)| buffer_bytes(spec, rows));
        if !self.arena.has_room(buffers.clone(), launches.scratch) {
            self.lists.forget(|_| true);
        }
        self.arena.reserve(&mut self.executor, buffers, launches.scratch)
    }

    fn next_cache(&mut self) -> u64 {
        self.caches += 1;
        self.caches
    }
}

impl<E: Executor> Backend for GpuBackend<E> {
    type Weight = GpuWeight<E::Buffer>;
    type Prepared = GpuStep<E>;
    type Cache = GpuCache<E::Buffer>;

    fn upload(&mut self, weight: WeightData, _usage: Usage) -> Result<Self::Weight, OpsError> {
        GpuWeight::upload(&mut self.executor, weight)
    }

    fn prepare(&mut self, plan: &Plan, weights: &[Self::Weight]) -> Result<GpuStep<E>, OpsError> {
        check_weights(plan, weights.iter().map(|weight| weight.spec))?;
        self.check_ops(plan)?;
        let launches = lower(plan, weights, self.fusion, self.executor.tiles())?;
        let kernels: Vec<_> = launches.list.iter().map(|launch| launch.kernel).collect();
        self.executor.compile(&kernels)?;
        let layout = StepLayout::new(plan);
        let words = vec![0; layout.words()];
        let inputs = self.executor.create_buffer("a step's inputs", 4 * words.len() as u64)?;
        self.reserve(plan, &launches)?;
        for (id, spec, rows) in plan.each_buffer() {
            let buffer = self.arena.buffer(id.0 as usize);
            if let (BufferKind::Ranked, Some(buffer)) = (spec.kind, buffer) {
                let nothing = vec![Ranked::PADDING; rows * spec.width];
                self.executor.write(buffer, 0, cast_slice(&nothing))?;
            }
        }
        let (plan, weights, recorded) = (plan.clone(), weights.to_vec(), self.lists.place());
        Ok(GpuStep { plan, layout, words, launches, weights, inputs, recorded, times: None })
    }

    fn write(
        &mut self,
        step: &mut GpuStep<E>,
        buffer: BufferId,
        rows: Range<usize>,
        data: &[u8],
    ) -> Result<(), OpsError> {
        let elements = check_write(&step.plan, buffer, &rows, data)?;
        self.reserve_for(step)?; // `run` would, and what is written here were gone
        let Some(memory) = self.arena.buffer(buffer.0 as usize) else {
            return Err(OpsError::Write { id: buffer, what: "not in memory" });
        };
        self.executor.write(memory, (elements.start * size_of::<f32>()) as u64, data)
    }

    fn run(
        &mut self,
        step: &mut GpuStep<E>,
        cache: &mut Self::Cache,
        inputs: &BatchInputs,
    ) -> Result<(), OpsError> {
        self.run_multi_step(step, cache, inputs, 1)
    }

    fn max_multi_steps(&self) -> usize {
        MAX_MULTI_STEPS
    }

    /// A GPU's logits are read as they are, and noise is added on the host.
    fn takes_noise(&self) -> bool {
        false
    }

    fn run_multi_step(
        &mut self,
        step: &mut GpuStep<E>,
        cache: &mut Self::Cache,
        inputs: &BatchInputs,
        steps: usize,
    ) -> Result<(), OpsError> {
        let most = if step.times.is_some() { 1 } else { MAX_MULTI_STEPS };
        check_multi_step(&step.plan, &cache.spec, cache.sizes(), inputs, (steps, most))?;
        step.layout.check(inputs)?;
        let found = inputs.top_logits.iter().filter(|request| request.noise.is_some()).count();
        if found > 0 {
            let what = "requests for tokens by noisy scores, on a GPU";
            return Err(OpsError::Inputs { what, expected: 0, found });
        }
        self.write_inputs(step, inputs)?;
        self.reserve_for(step)?;
        let numbers = (cache.number, self.arena.number);
        let is_over = |known: &Recording<E::List>| (known.cache, known.arena) == numbers;
        if !step.recorded.get().as_ref().is_some_and(is_over) {
            let list = self.record(step, cache, |_| true)?;
            *step.recorded.get() = Some(Recording { cache: numbers.0, arena: numbers.1, list });
        }
        let chunks = chunks(inputs, steps);
        match (&mut *step.recorded.get(), &mut step.times) {
            (Some(Recording { list, .. }), Some(times)) => {
                self.executor.play_timed(list, chunks, &mut times.launches)?;
                times.add_up(&step.launches.list);
                Ok(())
            }
            (Some(Recording { list, .. }), None) => self.executor.play_times(list, chunks, steps),
            (None, _) => Ok(()),
        }
    }

    fn time(&mut self, step: &mut GpuStep<E>, is_timed: bool) -> bool {
        let times = || Times::new(&step.plan);
        step.times = (is_timed && self.executor.can_time()).then(times);
        step.times.is_some()
    }

    fn times<'a>(&self, step: &'a GpuStep<E>) -> Option<StepTimes<'a>> {
        step.times.as_ref().map(|times| times.of_step())
    }

    async fn read(
        &mut self,
        step: &GpuStep<E>,
        buffer: BufferId,
        rows: Range<usize>,
        out: &mut [u8],
    ) -> Result<(), OpsError> {
        let spec = check_read(&step.plan, buffer, &rows, out, MAX_MULTI_STEPS)?;
        let error = |what| OpsError::Read { id: buffer, what };
        let Some(memory) = self.arena.buffer(buffer.0 as usize) else {
            return Err(error("not in memory"));
        };
        if !matches!(spec.kind, BufferKind::Quantized { .. }) {
            let offset = rows.start * spec.width * spec.kind.element_bytes();
            return self.executor.read(memory, offset as u64, out).await;
        }
        let is_made = |launch: &Launch| {
            matches!(launch.kernel, Kernel::Quantize { .. })
                && launch.arguments.contains(&Argument::Buffer(buffer))
        };
        if !step.launches.list.iter().any(is_made) {
            return Err(error("codes that are made where they are read"));
        }
        let padded = padded_columns(spec.width);
        let mut codes = vec![0; rows.len() * padded];
        self.executor.read(memory, (rows.start * padded) as u64, &mut codes).await?;
        for (out, codes) in out.chunks_exact_mut(spec.width).zip(codes.chunks_exact(padded)) {
            out.copy_from_slice(&codes[..spec.width]);
        }
        Ok(())
    }

    fn create_cache(&mut self, spec: &CacheSpec, blocks: usize) -> Result<Self::Cache, OpsError> {
        let number = self.next_cache();
        GpuCache::new(&mut self.executor, *spec, blocks, number)
    }

    fn grow_cache(&mut self, cache: &mut Self::Cache, blocks: usize) -> Result<(), OpsError> {
        let number = self.next_cache();
        if blocks > cache.blocks {
            self.lists.forget(|list| list.cache == cache.number);
        }
        cache.grow(&mut self.executor, blocks, number)
    }

    fn shrink_cache(&mut self, cache: &mut Self::Cache, blocks: usize) -> Result<(), OpsError> {
        let number = self.next_cache();
        if blocks < cache.blocks {
            self.lists.forget(|list| list.cache == cache.number);
        }
        cache.shrink(&mut self.executor, blocks, number)
    }

    fn grow_states(&mut self, cache: &mut Self::Cache, states: usize) -> Result<(), OpsError> {
        if states > 0 && !self.executor.runs_hybrid() {
            return Err(OpsError::NoStates);
        }
        if states > cache.states.count() {
            self.lists.forget(|list| list.cache == cache.number);
            cache.number = self.next_cache();
        }
        cache.states.grow(&mut self.executor, states)
    }

    fn shrink_states(&mut self, cache: &mut Self::Cache, states: usize) -> Result<(), OpsError> {
        if states < cache.states.count() {
            self.lists.forget(|list| list.cache == cache.number);
            cache.number = self.next_cache();
        }
        cache.states.shrink(&mut self.executor, states)
    }

    fn copy_states(
        &mut self,
        cache: &mut Self::Cache,
        pairs: &[(StateId, StateId)],
    ) -> Result<(), OpsError> {
        cache.states.copy(&mut self.executor, pairs)
    }

    async fn read_states(
        &mut self,
        cache: &Self::Cache,
        states: &[StateId],
        out: &mut [u8],
    ) -> Result<(), OpsError> {
        cache.states.read(&mut self.executor, states, out).await
    }

    fn write_states(
        &mut self,
        cache: &mut Self::Cache,
        states: &[StateId],
        data: &[u8],
    ) -> Result<(), OpsError> {
        cache.states.write(&mut self.executor, states, data)
    }

    fn copy_blocks(
        &mut self,
        cache: &mut Self::Cache,
        pairs: &[(BlockId, BlockId)],
    ) -> Result<(), OpsError> {
        cache.copy_blocks(&mut self.executor, pairs)
    }

    async fn read_blocks(
        &mut self,
        cache: &Self::Cache,
        blocks: &[BlockId],
        out: &mut [u8],
    ) -> Result<(), OpsError> {
        cache.read_blocks(&mut self.executor, blocks, out).await
    }

    fn write_blocks(
        &mut self,
        cache: &mut Self::Cache,
        blocks: &[BlockId],
        data: &[u8],
    ) -> Result<(), OpsError> {
        cache.write_blocks(&mut self.executor, blocks, data)
    }
}
