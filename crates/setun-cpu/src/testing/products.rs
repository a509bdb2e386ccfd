//! A step that is products of ternary matrices alone: what benches measure.

use setun_ops::{
    Backend, BatchInputs, BlockId, CacheSpec, DenseMatrix, Op, OpsError, Usage, WeightData,
    WeightId,
    dense::DenseValues,
    host_cache::HostCache,
    op::Linear,
    plan::{BufferKind, PlanBuilder, RowSet},
    random::Random,
    ternary::Scales,
};

use crate::{CpuBackend, CpuOptions, CpuStep};

/// Several matrices of one shape, so that together they exceed the caches as a model does.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Outputs of each.
    pub outputs: usize,
    /// Columns of each.
    pub columns: usize,
    /// What they are for.
    pub usage: Usage,
    /// How many.
    pub matrices: usize,
    /// Columns that share scales.
    pub groups: Groups,
}

/// Columns that share a scale; none where a matrix or a row has one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Groups {
    /// Columns in a group of weights.
    pub weights: Option<usize>,
    /// Columns in a group of activations.
    pub activations: Option<usize>,
}

/// The products of all matrices with some rows of activations.
#[derive(Debug)]
pub struct Products {
    backend: CpuBackend,
    step: CpuStep,
    cache: HostCache,
    inputs: BatchInputs,
    /// Multiply-adds of a run.
    pub multiply_adds: f64,
}

impl Products {
    /// Makes random matrices, and the step.
    ///
    /// # Errors
    ///
    /// If the level is not here, or memory is short.
    #[expect(clippy::cast_precision_loss, reason = "a count of operations")]
    pub fn new(options: CpuOptions, shape: Shape, rows: usize) -> Result<Self, String> {
        let mut backend = CpuBackend::new(options).map_err(|error| error.to_string())?;
        let cache = CacheSpec::smallest(512);
        let failed = |error: OpsError| error.to_string();
        let step = step(&mut backend, shape, rows, cache).map_err(failed)?;
        let cache = backend.create_cache(&cache, 1).map_err(failed)?;
        let inputs = BatchInputs {
            tokens: vec![0; rows],
            positions: (0..).take(rows).collect(),
            slots: vec![0; rows],
            block_tables: vec![vec![BlockId(0)]],
            ..BatchInputs::default()
        };
        let Shape { outputs, columns, matrices, .. } = shape;
        let sizes = [matrices, outputs, columns, rows];
        let multiply_adds = sizes.into_iter().map(|size| size as f64).product();
        Ok(Self { backend, step, cache, inputs, multiply_adds })
    }

    /// Computes all products.
    ///
    /// # Errors
    ///
    /// None with the inputs that are made here.
    pub fn run(&mut self) -> Result<(), OpsError> {
        self.backend.run(&mut self.step, &mut self.cache, &self.inputs)
    }
}

fn step(
    backend: &mut CpuBackend,
    shape: Shape,
    rows: usize,
    cache: CacheSpec,
) -> Result<CpuStep, OpsError> {
    let Shape { outputs, columns, usage, matrices, groups } = shape;
    let mut random = Random::new(1);
    let table = DenseMatrix::new(1, columns, DenseValues::F32(random.floats(columns).into()))?;
    let scales = groups.weights.map_or(Scales::Tensor(0.02), |group| Scales::ColumnGroups {
        columns: group,
        values: vec![0.02; outputs * columns.div_ceil(group)],
    });
    let matrix = WeightData::Ternary(random.ternary_with(outputs, columns, scales));
    let mut specs = vec![WeightData::Dense(table.clone()).spec()];
    specs.extend((0..matrices).map(|_| matrix.spec()));
    let mut builder = PlanBuilder::new(rows, 1, specs, cache);
    let floats = builder.buffer(BufferKind::F32, columns, RowSet::Batch);
    let x =
        builder.buffer(BufferKind::Quantized { group: groups.activations }, columns, RowSet::Batch);
    let out = builder.buffer(BufferKind::F32, outputs, RowSet::Batch);
    builder.push(Op::Embed { table: WeightId(0), out: floats });
    builder.push(Op::Quantize { x: floats, norm: None, out: x });
    for weight in (1..).map(WeightId).take(matrices) {
        let linear = Linear { x, weight, bias: None };
        builder.push(Op::TernaryMatmul { linear, residual: None, out, out_column: 0 });
    }
    let plan = builder.finish()?;
    let mut weights = vec![backend.upload(WeightData::Dense(table), Usage::General)?];
    for _ in 0..matrices {
        weights.push(backend.upload(matrix.clone(), usage)?);
    }
    backend.prepare(&plan, &weights)
}
