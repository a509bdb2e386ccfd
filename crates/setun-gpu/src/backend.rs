//! [`setun_ops::Backend`] over any executor.

use std::ops::Range;

use bytemuck::cast_slice;
use setun_ops::{
    Backend, BatchInputs, BlockId, BufferId, CacheSpec, OpsError, Plan, Usage, WeightData,
    backend::{check_step, check_weights},
    best::Ranked,
    plan::{BufferKind, BufferSpec},
    ternary::padded_columns,
};

use crate::{
    cache::GpuCache,
    executor::{Bound, Executor},
    launch::{Argument, Launch, Launches},
    lowering::{Fusion, lower},
    step_inputs::StepLayout,
    weight::GpuWeight,
};

/// Runs plans on a device. See the [crate](crate).
#[derive(Debug)]
pub struct GpuBackend<E: Executor> {
    pub(crate) executor: E,
    nothing: E::Buffer,
    caches: u64,
    fusion: Fusion,
}

/// A plan as launches, with its memory.
pub struct GpuStep<E: Executor> {
    pub(crate) plan: Plan,
    layout: StepLayout,
    words: Vec<u32>,
    launches: Launches,
    weights: Vec<GpuWeight<E::Buffer>>,
    inputs: E::Buffer,
    pub(crate) buffers: Vec<E::Buffer>,
    scratch: Vec<E::Buffer>,
    recorded: Option<(u64, E::List)>,
}

impl<E: Executor> GpuStep<E> {
    /// What is launched.
    #[must_use]
    pub fn launches(&self) -> &[Launch] {
        &self.launches.list
    }
}

impl<E: Executor> GpuBackend<E> {
    /// A backend that plays its launches here.
    ///
    /// # Errors
    ///
    /// If the device has no memory at all.
    pub fn new(mut executor: E) -> Result<Self, OpsError> {
        let nothing = executor.create_buffer("an argument that is not used", 16)?;
        Ok(Self { executor, nothing, caches: 0, fusion: Fusion::default() })
    }

    /// Says whether plans prepared from now on share launches.
    #[must_use]
    pub fn with_fusion(mut self, fusion: Fusion) -> Self {
        self.fusion = fusion;
        self
    }

    pub(crate) fn write_inputs(&mut self, step: &mut GpuStep<E>, inputs: &BatchInputs) {
        step.layout.write(inputs, &mut step.words);
        self.executor.write(&step.inputs, 0, cast_slice(&step.words));
    }

    pub(crate) fn record(
        &mut self,
        step: &GpuStep<E>,
        cache: &GpuCache<E::Buffer>,
        wanted: impl Fn(&Launch) -> bool,
    ) -> Result<E::List, OpsError> {
        let bound: Vec<_> = step
            .launches
            .list
            .iter()
            .filter(|launch| wanted(launch))
            .map(|launch| {
                let memory = launch.arguments.iter().map(|&argument| match argument {
                    Argument::Buffer(id) => step.buffers[id.0 as usize].clone(),
                    Argument::Scratch(index) => step.scratch[index].clone(),
                    Argument::Weight(id, part) => {
                        step.weights[id.0 as usize].parts[part].buffer.clone()
                    }
                    Argument::Keys(layer) => cache.layers[layer][0].clone(),
                    Argument::Values(layer) => cache.layers[layer][1].clone(),
                    Argument::Nothing => self.nothing.clone(),
                });
                Bound {
                    kernel: launch.kernel,
                    shape: &launch.shape,
                    buffers: std::iter::once(step.inputs.clone()).chain(memory).collect(),
                    grid: launch.grid,
                }
            })
            .collect();
        self.executor.record(&bound)
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
        let launches = lower(plan, weights, self.fusion)?;
        let layout = StepLayout::new(plan);
        let words = vec![0; layout.words()];
        let executor = &mut self.executor;
        let inputs = executor.create_buffer("a step's inputs", 4 * words.len() as u64)?;
        let buffers = plan.buffers().iter().enumerate().map(|(index, spec)| {
            let id = BufferId(u32::try_from(index).unwrap_or(u32::MAX));
            executor.create_buffer("a buffer", buffer_bytes(spec, plan.buffer_rows(id)))
        });
        let buffers = buffers.collect::<Result<_, _>>()?;
        let scratch = launches
            .scratch
            .iter()
            .map(|&bytes| executor.create_buffer("scratch memory", bytes))
            .collect::<Result<_, _>>()?;
        let (plan, weights) = (plan.clone(), weights.to_vec());
        let recorded = None;
        Ok(GpuStep { plan, layout, words, launches, weights, inputs, buffers, scratch, recorded })
    }

    fn run(
        &mut self,
        step: &mut GpuStep<E>,
        cache: &mut Self::Cache,
        inputs: &BatchInputs,
    ) -> Result<(), OpsError> {
        check_step(&step.plan, &cache.spec, cache.blocks, inputs)?;
        self.write_inputs(step, inputs);
        if step.recorded.as_ref().is_none_or(|(number, _)| *number != cache.number) {
            step.recorded = Some((cache.number, self.record(step, cache, |_| true)?));
        }
        match &step.recorded {
            Some((_, list)) => self.executor.play(list),
            None => Ok(()),
        }
    }

    async fn read(
        &mut self,
        step: &GpuStep<E>,
        buffer: BufferId,
        rows: Range<usize>,
        out: &mut [u8],
    ) -> Result<(), OpsError> {
        let error = |what| OpsError::Read { id: buffer, what };
        let spec = *step.plan.buffers().get(buffer.0 as usize).ok_or(error("not in the plan"))?;
        if rows.start > rows.end || rows.end > step.plan.buffer_rows(buffer) {
            return Err(error("rows out of range"));
        }
        if out.len() != rows.len() * spec.width * spec.kind.element_bytes() {
            return Err(error("destination of another size"));
        }
        let memory = &step.buffers[buffer.0 as usize];
        if spec.kind != BufferKind::Quantized {
            let offset = rows.start * spec.width * spec.kind.element_bytes();
            return self.executor.read(memory, offset as u64, out).await;
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
        cache.grow(&mut self.executor, blocks, number)
    }

    fn copy_blocks(
        &mut self,
        cache: &mut Self::Cache,
        pairs: &[(BlockId, BlockId)],
    ) -> Result<(), OpsError> {
        for &(from, to) in pairs {
            let (from, to) = (cache.check_block(from)?, cache.check_block(to)?);
            if from == to {
                continue;
            }
            for buffer in cache.layers.iter().flatten() {
                self.executor.copy((buffer, from), (buffer, to), cache.block_bytes())?;
            }
        }
        Ok(())
    }

    async fn read_blocks(
        &mut self,
        cache: &Self::Cache,
        blocks: &[BlockId],
        out: &mut [u8],
    ) -> Result<(), OpsError> {
        cache.check_blocks(blocks, out.len())?;
        let mut device = vec![0; usize::try_from(cache.block_bytes()).unwrap_or(usize::MAX)];
        let (elements, scales) = cache.host_bytes();
        let layer_bytes = 2 * (elements + scales);
        for (&block, out) in blocks.iter().zip(out.chunks_exact_mut(cache.spec.block_bytes())) {
            let offset = cache.check_block(block)?;
            for (layer, out) in cache.layers.iter().zip(out.chunks_exact_mut(layer_bytes)) {
                let (values, all_scales) = out.split_at_mut(2 * elements);
                for (index, buffer) in layer.iter().enumerate() {
                    self.executor.read(buffer, offset, &mut device).await?;
                    let values = &mut values[index * elements..][..elements];
                    cache.to_host(&device, values, &mut all_scales[index * scales..][..scales]);
                }
            }
        }
        Ok(())
    }

    fn write_blocks(
        &mut self,
        cache: &mut Self::Cache,
        blocks: &[BlockId],
        data: &[u8],
    ) -> Result<(), OpsError> {
        cache.check_blocks(blocks, data.len())?;
        let mut device = vec![0; usize::try_from(cache.block_bytes()).unwrap_or(usize::MAX)];
        let (elements, scales) = cache.host_bytes();
        let layer_bytes = 2 * (elements + scales);
        for (&block, data) in blocks.iter().zip(data.chunks_exact(cache.spec.block_bytes())) {
            let offset = cache.check_block(block)?;
            for (layer, data) in cache.layers.iter().zip(data.chunks_exact(layer_bytes)) {
                let (values, all_scales) = data.split_at(2 * elements);
                for (index, buffer) in layer.iter().enumerate() {
                    let values = &values[index * elements..][..elements];
                    cache.to_device(values, &all_scales[index * scales..][..scales], &mut device);
                    self.executor.write(buffer, offset, &device);
                }
            }
        }
        Ok(())
    }
}

/// Bytes of a buffer on a device: `wgsl/quantize.wgsl` tells the form of a quantized one.
fn buffer_bytes(spec: &BufferSpec, rows: usize) -> u64 {
    let row = match spec.kind {
        BufferKind::F32 => 4 * spec.width,
        BufferKind::Quantized => padded_columns(spec.width) + 8,
        BufferKind::Ranked => spec.width * size_of::<Ranked>(),
    };
    // Kernels read vectors of four words.
    ((rows * row).next_multiple_of(16)) as u64
}
