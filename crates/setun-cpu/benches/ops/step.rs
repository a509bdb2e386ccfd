//! A step that repeats one operation, and what it is made of.

use std::fmt;

use setun_cpu::{CpuBackend, CpuOptions, CpuStep, Level};
use setun_ops::{
    Backend, BatchInputs, BlockId, BufferId, CacheElement, CacheSpec, DenseMatrix, Op, Usage,
    WeightData, WeightId,
    dense::DenseValues,
    host_cache::HostCache,
    op::{HeadShape, Norm},
    plan::{BufferKind, PlanBuilder, RowSet},
    random::Random,
    ternary::Scales,
    top_logits::TopLogitsRequest,
};

/// Repetitions in a step, of operations that take little.
pub(crate) const REPEATS: usize = 16;

/// Positions of a cache block, as in the engine.
const BLOCK_POSITIONS: usize = 32;

/// Rows of the table that fills the first buffer.
const TOKENS: usize = 16;

/// Sizes of a model.
#[derive(Debug)]
pub(crate) struct Shape {
    pub(crate) name: &'static str,
    pub(crate) hidden: usize,
    pub(crate) ffn: usize,
    pub(crate) heads: HeadShape,
    pub(crate) vocab: usize,
}

const SHAPES: [Shape; 2] = [
    Shape {
        name: "2B-4T",
        hidden: 2560,
        ffn: 6912,
        heads: HeadShape { heads: 20, kv_heads: 5, head_dim: 128 },
        vocab: 128_256,
    },
    Shape {
        name: "small",
        hidden: 1024,
        ffn: 2816,
        heads: HeadShape { heads: 16, kv_heads: 4, head_dim: 64 },
        vocab: 32_000,
    },
];

/// One line of a bench.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    level: Level,
    pub(crate) shape: &'static Shape,
    pub(crate) rows: usize,
    threads: usize,
}

impl Case {
    pub(crate) fn with_threads(self, threads: usize) -> Self {
        Self { threads, ..self }
    }
}

/// Every level of this machine, every shape, and each of the numbers of rows.
pub(crate) fn cases(rows: &[usize]) -> Vec<Case> {
    let mut cases = vec![];
    for level in Level::available() {
        for shape in &SHAPES {
            cases.extend(rows.iter().map(|&rows| Case { level, shape, rows, threads: 1 }));
        }
    }
    cases
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let s = if self.rows == 1 { "" } else { "s" };
        write!(f, "{}, {}, {} row{s}", self.level, self.shape.name, self.rows)?;
        match self.threads {
            1 => Ok(()),
            threads => write!(f, ", {threads} threads"),
        }
    }
}

/// Weights of a step, and its cache.
pub(crate) struct Draft {
    pub(crate) random: Random,
    weights: Vec<WeightData>,
    usages: Vec<Usage>,
    cache: CacheSpec,
    positions: usize,
}

impl Draft {
    /// A step whose cache holds as many positions as it has rows.
    pub(crate) fn new(case: Case) -> Self {
        Self::with_cache(case.shape.heads, CacheElement::F32, case.rows)
    }

    /// A step whose rows are the last of this many positions.
    pub(crate) fn with_cache(heads: HeadShape, element: CacheElement, positions: usize) -> Self {
        let cache = CacheSpec {
            layers: 1,
            kv_heads: heads.kv_heads,
            head_dim: heads.head_dim,
            block_positions: BLOCK_POSITIONS,
            element,
            recurrent: None,
        };
        Self { random: Random::new(1), weights: vec![], usages: vec![], cache, positions }
    }

    /// As many layers of the cache.
    pub(crate) fn with_layers(mut self, layers: usize) -> Self {
        self.cache.layers = layers;
        self
    }

    pub(crate) fn weight(&mut self, weight: WeightData) -> WeightId {
        self.weights.push(weight);
        self.usages.push(Usage::General);
        WeightId(u32::try_from(self.weights.len() - 1).expect("few weights"))
    }

    /// A float table; where it is large, its values repeat.
    pub(crate) fn table(&mut self, rows: usize, columns: usize) -> WeightId {
        let some: Vec<f32> = (0..65_537).map(|_| self.random.unit() - 0.5).collect();
        let values = some.into_iter().cycle().take(rows * columns).map(half::f16::from_f32);
        let table = DenseMatrix::new(rows, columns, DenseValues::F16(values.collect()));
        self.weight(WeightData::Dense(table.expect("sizes agree")))
    }

    pub(crate) fn norm(&mut self, width: usize) -> Norm {
        let gain = (0..width).map(|_| self.random.unit() + 0.5).collect();
        Norm { gain: self.weight(WeightData::Vector(gain)), eps: 1e-5 }
    }

    /// Copies of a random matrix, each in memory of its own.
    pub(crate) fn matrices(&mut self, n: usize, outputs: usize, columns: usize) -> Vec<WeightId> {
        let matrix = self.random.ternary_with(outputs, columns, Scales::Tensor(0.02));
        (0..n).map(|_| self.weight(WeightData::Ternary(matrix.clone()))).collect()
    }

    /// Finishes a step: `build` adds operations over a buffer of random rows of `width`.
    pub(crate) fn step(
        mut self,
        case: Case,
        width: usize,
        build: impl FnOnce(&mut PlanBuilder, BufferId),
    ) -> Step {
        let table = self.table(TOKENS, width);
        let specs = self.weights.iter().map(WeightData::spec).collect();
        let mut plan = PlanBuilder::new(case.rows, case.rows, specs, self.cache).keep_buffers();
        let x = plan.buffer(BufferKind::F32, width, RowSet::Batch);
        plan.push(Op::Embed { table, out: x });
        build(&mut plan, x);
        let plan = plan.finish().expect("the plan fits together");

        let options = CpuOptions { level: Some(case.level), threads: Some(case.threads) };
        let mut backend = CpuBackend::new(options).expect("a level of this machine");
        let weights = self.weights.into_iter().zip(self.usages);
        let weights: Vec<_> =
            weights.map(|(data, usage)| backend.upload(data, usage).expect("memory")).collect();
        let prepared = backend.prepare(&plan, &weights).expect("memory");
        let blocks = self.positions.div_ceil(BLOCK_POSITIONS);
        let cache = backend.create_cache(&self.cache, blocks).expect("memory");
        let inputs = inputs(case.rows, self.positions, plan.top_logits_limits().is_some());
        Step { backend, prepared, cache, inputs }
    }
}

/// The last rows of a sequence; all of them want their best token, where the plan ranks.
fn inputs(rows: usize, positions: usize, ranked: bool) -> BatchInputs {
    let count = |n: usize| 0..u32::try_from(n).expect("few rows");
    let first = positions - rows;
    let request = TopLogitsRequest { k: 1, ..<_>::default() };
    BatchInputs {
        tokens: count(rows).map(|row| row % 16).collect(),
        positions: count(positions).skip(first).collect(),
        slots: vec![0; rows],
        block_tables: vec![count(positions.div_ceil(BLOCK_POSITIONS)).map(BlockId).collect()],
        wanted: count(rows).collect(),
        top_logits: if ranked { vec![request; rows] } else { vec![] },
        ..BatchInputs::default()
    }
}

/// A prepared step.
pub(crate) struct Step {
    backend: CpuBackend,
    prepared: CpuStep,
    pub(crate) cache: HostCache,
    inputs: BatchInputs,
}

impl Step {
    pub(crate) fn run(&mut self) {
        let done = self.backend.run(&mut self.prepared, &mut self.cache, &self.inputs);
        done.expect("good inputs");
    }
}
