//! A small model of the kind of another, for a device's self-test: its operations over the same
//! kinds of weights and rows of the model's width, but one layer, few heads, a narrow feed-forward
//! part, a short vocabulary and a short context; for each number of rows that kernels differ by.

use half::{bf16, f16};
use setun_ops::{
    BatchInputs, BlockId, BufferId, CacheSpec, DenseMatrix, OpsError, TernaryMatrix, Usage,
    WeightData, WeightId, WeightSpec,
    argmax::ArgmaxRequest,
    comparison::Case,
    dense::DenseValues,
    numeric::to_u32,
    op::{Activation, ArgmaxCapacity, HeadShape, Norm},
    random::Random,
    rope_append::RopeTable,
    ternary::{Scales, row_bytes},
    top_logits::TopLogitsRequest,
    weight::{DenseKind, ScaleKind, WeightKind},
};

use crate::{
    layout::{LayerLayout, Layout, LinearLayout, MixerLayout},
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
    let layer = sample.layout.layers.first().cloned();
    sample.layout.layers = layer.into_iter().cycle().take(TIMED_LAYERS).collect();
    let cache = CacheSpec { layers: sample.layout.layers.len(), ..cache };
    let head = HeadOutput::TopLogits { capacity: 16 };
    let ModelPlan { plan, output, .. } =
        model_plan(&sample.layout, activation, cache, (1, 1), head, false)?;
    let blocks = TIMED_STEPS.div_ceil(cache.block_positions);
    let weights = sample.weights(kinds, &mut Random::new(0))?;
    let usages = vec![Usage::General; weights.len()];
    let steps = (0..TIMED_STEPS).map(|first| step(first, (1, head), blocks, blocks, sample.vocab));
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
) -> Vec<BatchInputs> {
    let first = [0, MAX_OF_ONE - rows / 2];
    first.map(|first| step(first, (rows, head), blocks, table, vocab)).to_vec()
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
        small.layers.truncate(1);
        small.specs = vec![WeightSpec::Vector { len: 1 }; layout.specs.len()];
        let HeadShape { heads, kv_heads, head_dim } = layout.heads;
        if size == Size::Small {
            small.heads = HeadShape { heads: heads / kv_heads, kv_heads: 1, head_dim };
        }
        let Some(mut layer) = small.layers.pop() else { return Self { layout: small, vocab: 1 } };
        let (hidden, vocab) = match layout.specs[layout.embedding.0 as usize] {
            WeightSpec::Dense { rows, columns } => (columns, rows.min(MAX_VOCAB)),
            _ => (1, 1),
        };
        let table = WeightSpec::Dense { rows: vocab, columns: hidden };
        let mut set = |id: WeightId, spec| small.specs[id.0 as usize] = spec;
        set(layout.embedding, table);
        set(layout.head, table);
        set(layout.rope, WeightSpec::Rope { positions: POSITIONS, head_dim });
        set(layout.final_norm.gain, WeightSpec::Vector { len: hidden });
        let widths = Widths {
            hidden,
            queries: small.heads.heads * head_dim,
            kv: small.heads.kv_width(),
            head: head_dim,
            ffn: match size {
                Size::Small => layer.gate.outputs.min(MAX_FFN),
                Size::Layer => layer.gate.outputs,
            },
        };
        widths.set(&mut layer, &layout.specs, &mut set);
        small.layers.push(layer);
        Self { layout: small, vocab }
    }

    /// A case of this many rows, and what the head gives of them.
    fn case(
        &self,
        kinds: &[WeightKind],
        activation: Activation,
        cache: CacheSpec,
        (rows, head): (usize, HeadOutput),
    ) -> Result<Case, OpsError> {
        let cache = CacheSpec { layers: 1, kv_heads: 1, ..cache };
        let wanted = rows.min(MAX_WANTED);
        let plan = model_plan(&self.layout, activation, cache, (rows, wanted), head, true)?.plan;
        let blocks = KEPT_POSITIONS.div_ceil(cache.block_positions);
        let table = POSITIONS.div_ceil(cache.block_positions);
        Ok(Case {
            plan,
            weights: self.weights(kinds, &mut Random::new(1))?,
            usages: vec![Usage::General; self.layout.specs.len()],
            steps: steps((rows, head), blocks, table, self.vocab),
            blocks,
        })
    }

    /// Random weights of the kinds that the model's own have.
    fn weights(
        &self,
        kinds: &[WeightKind],
        random: &mut Random,
    ) -> Result<Vec<WeightData>, OpsError> {
        let pairs = self.layout.specs.iter().zip(kinds);
        pairs.map(|(&spec, &kind)| weight(spec, kind, random)).collect()
    }
}

/// Sizes of a small layer.
struct Widths {
    hidden: usize,
    queries: usize,
    kv: usize,
    head: usize,
    ffn: usize,
}

impl Widths {
    fn set(
        &self,
        layer: &mut LayerLayout,
        specs: &[WeightSpec],
        set: &mut impl FnMut(WeightId, WeightSpec),
    ) {
        let Self { hidden, queries, kv, head, ffn } = *self;
        let mut vector = |norm: Option<Norm>, len| {
            if let Some(norm) = norm {
                set(norm.gain, WeightSpec::Vector { len });
            }
        };
        vector(Some(layer.input_norm), hidden);
        if let MixerLayout::Attention(attention) = &layer.mixer {
            vector(attention.head_norms.map(|norms| norms.query), head);
            vector(attention.head_norms.map(|norms| norms.key), head);
            vector(attention.sub_norm, queries);
        }
        vector(Some(layer.post_attention_norm), hidden);
        vector(layer.ffn_sub_norm, ffn);
        let mut linear = |linear: &mut LinearLayout, outputs, columns| {
            linear.outputs = outputs;
            let grouped = matches!(
                specs[linear.weight.0 as usize],
                WeightSpec::Ternary { grouped: true, .. }
            );
            set(linear.weight, WeightSpec::Ternary { rows: outputs, columns, grouped });
            if let Some(bias) = linear.bias {
                set(bias.weight, WeightSpec::Vector { len: outputs });
            }
            if let Some(norm) = linear.norm {
                set(norm.gain, WeightSpec::Vector { len: columns });
            }
        };
        if let MixerLayout::Attention(attention) = &mut layer.mixer {
            match attention.qkv.as_mut_slice() {
                [stacked] => linear(stacked, queries + 2 * kv, hidden),
                separate => {
                    let columns = [0, queries, queries + kv];
                    let outputs = [queries, kv, kv];
                    for ((part, column), outputs) in separate.iter_mut().zip(columns).zip(outputs) {
                        linear(part, outputs, hidden);
                        part.column = column;
                    }
                }
            }
        }
        linear(&mut layer.output, hidden, queries);
        linear(&mut layer.gate, ffn, hidden);
        linear(&mut layer.up, ffn, hidden);
        linear(&mut layer.down, hidden, ffn);
    }
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
