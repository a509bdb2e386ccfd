//! A small model of the kind of another, for a device's self-test: its operations over the same
//! kinds of weights and rows of the model's width, but one layer of each kind, few heads, a narrow feed-forward
//! part, a short vocabulary and a short context; for each number of rows that kernels differ by.

mod sizes;

use half::{bf16, f16};
use setun_ops::{
    BatchInputs, BlockId, BufferId, CacheSpec, DenseMatrix, HAS_RECURRENT, OpsError, RecurrentSpec,
    StateId, TernaryMatrix, Usage, WeightData, WeightSpec,
    argmax::ArgmaxRequest,
    comparison::Case,
    dense::DenseValues,
    numeric::to_u32,
    op::{Activation, ArgmaxCapacity},
    random::Random,
    recurrent::StateRows,
    rope_append::RopeTable,
    ternary::{Scales, row_bytes},
    top_logits::TopLogitsRequest,
    weight::{DenseKind, ScaleKind, WeightKind},
};

use self::sizes::Sizes;
use crate::{
    layout::{LayerLayout, Layout, MixerLayout},
    plan::{HeadOutput, ModelPlan, model_plan},
};

/// More than the positions that one workgroup attends to, where several share them.
const POSITIONS: usize = 640;
const MAX_OF_ONE: usize = 512;
/// Positions that the cache has room for: those beyond share blocks with others.
const KEPT_POSITIONS: usize = 64;
const MAX_VOCAB: usize = 96;
const MAX_FFN: usize = 288;
/// Rows of a ternary matrix that differ.
const DIFFERENT_ROWS: usize = 97;
/// Layers of what is timed. They share their weights.
const TIMED_LAYERS: usize = 4;
/// Steps of what is timed.
const TIMED_STEPS: usize = 8;
/// Rows of the steps: one, which may share launches, those that kernels take at once, and more.
const ROWS: [usize; 5] = [1, 2, 4, 8, 40];
/// Most rows that are requested, the first ones.
const MAX_WANTED: usize = 8;

/// Cases like a model: its plan for several numbers of rows, in ascending order. Their weights are
/// the same, and so are the rows of their first steps that they both have. `kinds[i]` is the kind
/// of weight `i` of the layout.
///
/// # Errors
///
/// If the model's layout is not consistent.
pub fn cases(
    layout: &Layout,
    kinds: &[WeightKind],
    activation: Activation,
    cache: CacheSpec,
) -> Result<Vec<Case>, OpsError> {
    let sample = Sample::of(layout, Size::Small);
    let head = HeadOutput::TopLogits { capacity: 16 };
    ROWS.into_iter().map(|rows| sample.case(kinds, activation, cache, (rows, head))).collect()
}

/// A case like a model whose head chooses the greedy token of one row.
///
/// # Errors
///
/// If the model's layout is not consistent.
pub fn choosing(
    layout: &Layout,
    kinds: &[WeightKind],
    activation: Activation,
    cache: CacheSpec,
) -> Result<Case, OpsError> {
    let head = HeadOutput::Argmax { room: ArgmaxCapacity { touched: 16, biases: 0 } };
    Sample::of(layout, Size::Small).case(kinds, activation, cache, (1, head))
}

/// A case to time: some layers of a model as large as its own, one row a step. What counts is the
/// weights that a layer reads, so the layers share theirs, and the vocabulary is short.
///
/// # Errors
///
/// If the model's layout is not consistent.
pub fn timed(
    layout: &Layout,
    kinds: &[WeightKind],
    activation: Activation,
    cache: CacheSpec,
) -> Result<Timed, OpsError> {
    let mut sample = Sample::of(layout, Size::Layer);
    sample.repeat(layout, TIMED_LAYERS);
    let cache = sample.cache(cache);
    let head = HeadOutput::TopLogits { capacity: 16 };
    let ModelPlan { plan, output, .. } =
        model_plan(&sample.layout, activation, cache, (1, 1), head, false)?;
    let blocks = TIMED_STEPS.div_ceil(cache.block_positions);
    let weights = sample.weights(kinds, &mut Random::new(0))?;
    let usages = vec![Usage::General; weights.len()];
    let steps = (0..TIMED_STEPS).map(|first| {
        let mut step = step(first, (1, head), blocks, blocks, sample.vocab);
        if HAS_RECURRENT && cache.recurrent.is_some() {
            step.states = vec![state_rows(first, 1, 0)];
        }
        step
    });
    let steps = steps.collect();
    Ok(Timed { case: Case { plan, weights, usages, steps, blocks }, output, layers: TIMED_LAYERS })
}

/// A case to time.
#[derive(Clone, Debug)]
pub struct Timed {
    /// The case.
    pub case: Case,
    /// What is read to know that a step has been done.
    pub output: BufferId,
    /// Layers of a step.
    pub layers: usize,
}

/// The first rows of a sequence, and rows where workgroups begin to share positions.
fn steps(
    (rows, head): (usize, HeadOutput),
    blocks: usize,
    table: usize,
    vocab: usize,
    recurrent: Option<RecurrentSpec>,
) -> Vec<BatchInputs> {
    let first = [0, MAX_OF_ONE - rows / 2];
    let mut steps = first.map(|first| step(first, (rows, head), blocks, table, vocab)).to_vec();
    if let Some(spec) = recurrent.filter(|_| HAS_RECURRENT) {
        let tentative = spec.tentative.min(rows - 1).min(2);
        steps[0].states = vec![state_rows(0, rows, tentative)];
        steps[1].states = vec![state_rows(first[1], rows, 0)];
    }
    steps
}

/// What rows from a position on do with a state, which has taken in those before, whatever they were. Some rows may be
/// tentative, and a snapshot is kept where a step goes on.
fn state_rows(first: usize, rows: usize, tentative: usize) -> StateRows {
    let (own, snapshot) = (StateId(0), StateId(1));
    let certain = first + rows - tentative;
    let begins = first == 0;
    let between = (!begins && rows > 1).then(|| (snapshot, to_u32(first + rows / 2)));
    StateRows {
        loaded: (!begins).then(|| (own, to_u32(first))),
        stored: between.into_iter().chain([(own, to_u32(certain))]).collect(),
    }
}

/// Some rows of a sequence, whose table has this many entries of as many blocks as there are.
fn step(
    first: usize,
    (rows, head): (usize, HeadOutput),
    blocks: usize,
    table: usize,
    vocab: usize,
) -> BatchInputs {
    let wanted = rows.min(MAX_WANTED);
    let request = TopLogitsRequest { k: 5, touched: vec![1, 4], ..<_>::default() };
    let chosen = ArgmaxRequest { penalty: 1.3, touched: vec![1, 4], biases: vec![] };
    let chooses = matches!(head, HeadOutput::Argmax { .. });
    BatchInputs {
        tokens: (first..first + rows).map(|i| to_u32(i * 31 % vocab)).collect(),
        positions: (first..first + rows).map(to_u32).collect(),
        slots: vec![0; rows],
        block_tables: vec![(0..table).map(|index| BlockId(to_u32(index % blocks))).collect()],
        wanted: (0..wanted).map(to_u32).collect(),
        top_logits: if chooses { vec![] } else { vec![request; wanted] },
        argmax: if chooses { vec![chosen; wanted] } else { vec![] },
        ..BatchInputs::default()
    }
}

/// How much of a model a sample has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Size {
    /// What a definition can compute while somebody waits.
    Small,
    /// All heads and the whole feed-forward part.
    Layer,
}

struct Sample {
    layout: Layout,
    vocab: usize,
}

impl Sample {
    /// Weights that it has no use for are of no size.
    fn of(layout: &Layout, size: Size) -> Self {
        let mut small = layout.clone();
        small.layers = one_of_each(layout);
        small.specs = vec![WeightSpec::Vector { len: 1 }; layout.specs.len()];
        if small.layers.is_empty() {
            return Self { layout: small, vocab: 1 };
        }
        let vocab = Sizes::new(layout, size).set(layout, &mut small);
        Self { layout: small, vocab }
    }

    /// Layers as a model has them, which share the weights of those of their kind.
    fn repeat(&mut self, layout: &Layout, layers: usize) {
        let kinds = layout.layers.iter().cycle().take(layers);
        let layers = kinds.filter_map(|of| self.layout.layers.iter().find(|it| is_alike(of, it)));
        self.layout.layers = layers.cloned().collect();
    }

    /// The cache of its layers.
    fn cache(&self, cache: CacheSpec) -> CacheSpec {
        let nets = self.layout.layers.iter().filter_map(|layer| match &layer.mixer {
            MixerLayout::DeltaNet(net) => Some(net.shape),
            MixerLayout::Attention(_) => None,
        });
        let (layers, shape) = (nets.clone().count(), nets.clone().next());
        let recurrent = cache.recurrent.zip(shape).filter(|_| HAS_RECURRENT);
        CacheSpec {
            layers: (self.layout.layers.len() - layers).max(1),
            kv_heads: self.layout.heads.kv_heads,
            recurrent: recurrent.map(|(spec, shape)| RecurrentSpec { layers, shape, ..spec }),
            ..cache
        }
    }

    /// A case of this many rows, and what the head gives of them.
    fn case(
        &self,
        kinds: &[WeightKind],
        activation: Activation,
        cache: CacheSpec,
        (rows, head): (usize, HeadOutput),
    ) -> Result<Case, OpsError> {
        let cache = self.cache(cache);
        let wanted = rows.min(MAX_WANTED);
        let plan = model_plan(&self.layout, activation, cache, (rows, wanted), head, true)?.plan;
        let blocks = KEPT_POSITIONS.div_ceil(cache.block_positions);
        let table = POSITIONS.div_ceil(cache.block_positions);
        Ok(Case {
            plan,
            weights: self.weights(kinds, &mut Random::new(1))?,
            usages: vec![Usage::General; self.layout.specs.len()],
            steps: steps((rows, head), blocks, table, self.vocab, cache.recurrent),
            blocks,
        })
    }

    /// Random weights of the kinds that the model's own have.
    fn weights(
        &self,
        kinds: &[WeightKind],
        random: &mut Random,
    ) -> Result<Vec<WeightData>, OpsError> {
        // Sizes may add vectors.
        let kinds = kinds.iter().copied().chain(std::iter::repeat(WeightKind::Floats));
        let pairs = self.layout.specs.iter().zip(kinds);
        let mut weights =
            pairs.map(|(&spec, kind)| weight(spec, kind, random)).collect::<Result<Vec<_>, _>>()?;
        for layer in self.layout.layers.iter().filter(|_| HAS_RECURRENT) {
            let MixerLayout::DeltaNet(net) = &layer.mixer else { continue };
            if let WeightData::Vector(decay) = &mut weights[net.weights.decay.0 as usize] {
                for factor in decay {
                    *factor = -factor.abs();
                }
            }
        }
        Ok(weights)
    }
}

/// The first layer of each kind.
fn one_of_each(layout: &Layout) -> Vec<LayerLayout> {
    let mut kept: Vec<LayerLayout> = vec![];
    for layer in &layout.layers {
        if !kept.iter().any(|known| is_alike(known, layer)) {
            kept.push(layer.clone());
        }
    }
    kept
}

fn is_alike(a: &LayerLayout, b: &LayerLayout) -> bool {
    std::mem::discriminant(&a.mixer) == std::mem::discriminant(&b.mixer)
}

fn weight(spec: WeightSpec, kind: WeightKind, random: &mut Random) -> Result<WeightData, OpsError> {
    Ok(match spec {
        WeightSpec::Vector { len } => {
            WeightData::Vector((0..len).map(|_| 0.5 + random.unit()).collect())
        }
        WeightSpec::Rope { positions, head_dim } => {
            let frequencies: Vec<f32> = (0..head_dim / 2).map(|_| random.unit()).collect();
            WeightData::Rope(RopeTable::new(positions, &frequencies)?)
        }
        WeightSpec::Dense { rows, columns } => {
            WeightData::Dense(DenseMatrix::new(rows, columns, table(kind, rows, columns, random))?)
        }
        WeightSpec::Ternary { rows, columns, .. } => {
            let scales = match kind {
                WeightKind::Ternary(kind) => scales(kind, rows, columns, random),
                _ => Scales::Tensor(scale(random)),
            };
            WeightData::Ternary(ternary(rows, columns, scales, random)?)
        }
    })
}

/// A matrix of which few rows differ, as making many takes longer than what they are for.
fn ternary(
    rows: usize,
    columns: usize,
    scales: Scales,
    random: &mut Random,
) -> Result<TernaryMatrix, OpsError> {
    let some = random.ternary_with(rows.min(DIFFERENT_ROWS), columns, Scales::Tensor(1.0));
    let codes = some.codes().iter().copied().cycle().take(rows * row_bytes(columns));
    TernaryMatrix::new(rows, columns, codes.collect::<Vec<_>>(), scales)
}

fn scales(kind: ScaleKind, rows: usize, columns: usize, random: &mut Random) -> Scales {
    let mut many = |count| (0..count).map(|_| scale(random)).collect();
    match kind {
        ScaleKind::Tensor => Scales::Tensor(scale(random)),
        ScaleKind::Rows => Scales::Rows(many(rows)),
        ScaleKind::ColumnGroups(group) => Scales::ColumnGroups {
            columns: group,
            values: many(rows * columns.div_ceil(group.max(1))),
        },
    }
}

fn scale(random: &mut Random) -> f32 {
    0.02 * (0.5 + random.unit())
}

/// A table of elements of a kind.
fn table(kind: WeightKind, rows: usize, columns: usize, random: &mut Random) -> DenseValues {
    let mut floats = || -> Vec<f32> { (0..rows * columns).map(|_| random.unit() - 0.5).collect() };
    let WeightKind::Dense(kind) = kind else { return DenseValues::F32(floats().into()) };
    match kind {
        DenseKind::F32 => DenseValues::F32(floats().into()),
        DenseKind::F16 => DenseValues::F16(floats().into_iter().map(f16::from_f32).collect()),
        DenseKind::Bf16 => DenseValues::Bf16(floats().into_iter().map(bf16::from_f32).collect()),
        DenseKind::Int8Rows => DenseValues::Int8Rows {
            codes: (0..rows * columns).map(|_| random.i8().max(-127)).collect(),
            scales: (0..rows).map(|_| 0.01 * (0.5 + random.unit())).collect(),
        },
        DenseKind::Ternary(kind) => {
            let scales = scales(kind, rows, columns, random);
            DenseValues::Ternary(random.ternary_with(rows, columns, scales))
        }
    }
}
