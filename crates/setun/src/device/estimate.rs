//! Estimate of a model's memory, before its weights are read.

use setun_model::{
    BLOCK_POSITIONS, MAX_ROWS, ModelError,
    plan::{HeadOutput, model_plan},
};
use setun_ops::{
    BufferId, CacheSpec, Plan, Usage, WeightSpec,
    plan::BufferKind,
    quantize::scales_of_row,
    ternary::{PLANE_COLUMNS, padded_columns},
    top_logits::Ranked,
    weight::{DenseKind, ScaleKind, WeightKind},
};

use super::{Device, DeviceOptions, HeadType, placement::Placement};
use crate::{error::Error, header::ModelHeader};

/// Bytes of a vector of four words, which a GPU's kernels read at once.
const QUAD_BYTES: u64 = 16;

/// Memory that a model takes on a device, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryEstimate {
    /// Positions of a whole context.
    pub context: u64,
    /// The weights as the device keeps them, with what is kept beside them.
    pub weights: u64,
    /// The KV cache of one whole context.
    pub cache: u64,
    /// The KV cache of one position.
    pub position_cache: u64,
    /// The recurrent state of one sequence, whatever its length; 0 of a model without.
    pub state: u64,
    /// The buffers of steps, once the largest has run.
    pub steps: u64,
    /// The largest weight: beside what is kept, host memory has it once more while it is loaded.
    pub largest_weight: u64,
    /// The largest buffer; of a GPU's only those that are not cut.
    pub largest_buffer: u64,
}

impl MemoryEstimate {
    /// Most of it at once: while the last weight is loaded, or when a context is full.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.weights + self.largest_weight.max(self.cache + self.state + self.steps)
    }

    fn add_weights(&mut self, header: &ModelHeader, device: &Device) {
        let weights = header.layout.specs.iter().zip(&header.kinds);
        for (index, (&spec, &kind)) in weights.enumerate() {
            let (bytes, is_cut) = match device {
                Device::Scalar => (kind.bytes(spec), false),
                Device::Gpu(_) => (on_gpu(spec, kind), matches!(spec, WeightSpec::Dense { .. })),
                _ => (setun_cpu::weight_bytes(spec, kind, usage(header, index)), false),
            };
            self.add_weight(bytes, is_cut);
            if let WeightSpec::Rope { positions, .. } = spec {
                self.context = positions as u64;
            }
        }
    }

    fn add_weight(&mut self, bytes: u64, is_cut: bool) {
        self.weights += bytes;
        self.largest_weight = self.largest_weight.max(bytes);
        if !is_cut {
            self.largest_buffer = self.largest_buffer.max(bytes);
        }
    }

    /// Keys and values of a layer are apart.
    fn add_cache(&mut self, spec: CacheSpec) {
        let blocks = self.context.div_ceil(BLOCK_POSITIONS as u64);
        self.cache = blocks * spec.block_bytes() as u64;
        self.position_cache = spec.block_bytes() as u64 / BLOCK_POSITIONS as u64;
        self.state = spec.state_bytes() as u64;
        let buffer = self.cache / (2 * spec.layers.max(1) as u64);
        self.largest_buffer = self.largest_buffer.max(buffer);
    }

    /// Steps of all sizes are twice the largest, as sizes are powers of two; or they share it.
    fn add_steps(&mut self, plan: &Plan, is_gpu: bool) {
        for (id, buffer) in (0..).zip(plan.buffers()) {
            let row = match buffer.kind {
                BufferKind::F32 => 4 * buffer.width,
                BufferKind::Quantized { group } => {
                    let padded = padded_columns(buffer.width);
                    // Sums of a row, on a GPU if it has one scale, and of its planes.
                    let sums = match (is_gpu, group) {
                        (true, Some(_)) => 0,
                        (true, None) => 1,
                        (false, _) => 1 + padded / PLANE_COLUMNS,
                    };
                    padded + 4 * (scales_of_row(buffer.width, group) + sums)
                }
                BufferKind::Ranked => buffer.width * size_of::<Ranked>(),
                BufferKind::Tokens => buffer.width * 4,
            };
            let bytes = plan.buffer_rows(BufferId(id)) as u64 * row as u64;
            self.steps += if is_gpu { bytes } else { 2 * bytes };
            self.largest_buffer = self.largest_buffer.max(bytes);
        }
    }
}

impl ModelHeader {
    /// What the model takes of a device's memory: that of the processor's best level, where the
    /// options leave it open. The device need not be here.
    ///
    /// # Errors
    ///
    /// If the model has a shape that no plan can be made for, does not take an option, or has operations that
    /// the device lacks.
    pub fn estimate(&self, options: DeviceOptions) -> Result<MemoryEstimate, Error> {
        let mut header = self.clone();
        header.apply(&options)?;
        header.check_device(&options.device)?;
        let is_gpu = matches!(options.device, Device::Gpu(_));
        let placement = Placement::new(&header, options);
        let mut found = MemoryEstimate::default();
        found.add_weights(&header, &placement.options.device);
        let Self { config, layout, .. } = &header;
        let head = layout.specs[layout.head.0 as usize];
        if let (HeadType::Screened, false, WeightSpec::Dense { rows, columns }) =
            (placement.head, is_gpu, head)
        {
            let kind = header.kinds[layout.head.0 as usize];
            found.weights += setun_cpu::screen_bytes(rows, columns, kind);
        }
        let cache = placement.cache(&header);
        found.add_cache(cache);
        let rows = config.context_length.next_power_of_two().min(MAX_ROWS);
        let best = HeadOutput::TopLogits { capacity: 16 };
        let plan = model_plan(layout, config.activation, cache, (rows, 1), best, false);
        found.add_steps(&plan.map_err(ModelError::from)?.plan, is_gpu);
        Ok(found)
    }
}

/// What a weight is for.
fn usage(header: &ModelHeader, index: usize) -> Usage {
    let is_down = header.layout.layers.iter().any(|layer| layer.down.weight.0 as usize == index);
    if is_down && header.has_sparse_inputs() { Usage::SparseInput } else { Usage::General }
}

/// Bytes of a weight on a GPU: in vectors of four words, ternary tables as floats, and matrices
/// with a scale for each row at least.
fn on_gpu(spec: WeightSpec, kind: WeightKind) -> u64 {
    match (spec, kind) {
        (WeightSpec::Dense { rows, columns }, WeightKind::Dense(kind)) => {
            let quads = match kind {
                DenseKind::F16 | DenseKind::Bf16 => columns.div_ceil(8),
                DenseKind::Int8Rows => columns.div_ceil(16) + 1,
                DenseKind::F32 | DenseKind::Ternary(_) => columns.div_ceil(4),
            };
            rows as u64 * quads as u64 * QUAD_BYTES
        }
        (WeightSpec::Ternary { .. }, WeightKind::Ternary(ScaleKind::Tensor)) => {
            on_gpu(spec, WeightKind::Ternary(ScaleKind::Rows))
        }
        _ => kind.bytes(spec).next_multiple_of(QUAD_BYTES),
    }
}
