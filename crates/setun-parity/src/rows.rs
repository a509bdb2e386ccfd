//! Cases of operations that work row by row.

use crate::{Case, Random, steps};
use setun_ops::{
    CacheSpec, DenseMatrix, Op, Usage, WeightData, WeightId, WeightSpec,
    dense::DenseValues,
    op::{BufferId, Linear, Norm},
    plan::{BufferKind, PlanBuilder, RowSet},
};

/// Widths around those of lanes and blocks.
pub(crate) const WIDTHS: [usize; 12] = [1, 7, 15, 16, 17, 64, 96, 100, 127, 128, 320, 515];

/// Columns of activations that share a scale.
const GROUPS: [usize; 5] = [32, 64, 96, 128, 256];

/// Tokens of the table that fills the first buffer.
pub(crate) const TOKENS: usize = 12;

/// Collects the weights of a case, and its plan once they are known.
pub(crate) struct Draft {
    pub(crate) weights: Vec<WeightData>,
    pub(crate) usages: Vec<Usage>,
    ops: Vec<Op>,
    buffers: Vec<(BufferKind, usize, RowSet)>,
}

impl Draft {
    pub(crate) fn new() -> Self {
        Self { weights: vec![], usages: vec![], ops: vec![], buffers: vec![] }
    }

    pub(crate) fn weight(&mut self, weight: WeightData) -> WeightId {
        self.weights.push(weight);
        self.usages.push(Usage::General);
        WeightId(crate::to_u32(self.weights.len() - 1))
    }

    /// A buffer of codes with a scale a row, or for each group of its columns.
    pub(crate) fn quantized(
        &mut self,
        random: &mut Random,
        width: usize,
        rows: RowSet,
    ) -> BufferId {
        let group = random.chance(0.5).then(|| random.pick(&GROUPS));
        self.buffer(BufferKind::Quantized { group }, width, rows)
    }

    /// Whether activations have a scale for each group of columns.
    pub(crate) fn is_grouped(&self, x: BufferId) -> bool {
        matches!(self.buffers[x.0 as usize].0, BufferKind::Quantized { group: Some(_) })
    }

    /// Says of some matrices that their activations are mostly zero, whether it is so or not.
    pub(crate) fn maybe_sparse(&mut self, random: &mut Random, linear: &Linear) {
        if random.chance(0.6) && !self.is_grouped(linear.x) {
            self.usages[linear.weight.0 as usize] = Usage::SparseInput;
        }
    }

    pub(crate) fn buffer(&mut self, kind: BufferKind, width: usize, rows: RowSet) -> BufferId {
        self.buffers.push((kind, width, rows));
        BufferId(crate::to_u32(self.buffers.len() - 1))
    }

    pub(crate) fn width(&self, buffer: BufferId) -> usize {
        self.buffers[buffer.0 as usize].1
    }

    pub(crate) fn push(&mut self, op: Op) {
        self.ops.push(op);
    }

    /// A float buffer of all rows, filled from a random table.
    pub(crate) fn embedded(&mut self, random: &mut Random, width: usize) -> BufferId {
        let values = DenseValues::F32(random.table(TOKENS, width).into());
        let table = DenseMatrix::new(TOKENS, width, values).expect("sizes agree");
        self.embedded_from(table)
    }

    pub(crate) fn embedded_from(&mut self, table: DenseMatrix) -> BufferId {
        let width = table.columns();
        let table = self.weight(WeightData::Dense(table));
        let out = self.buffer(BufferKind::F32, width, RowSet::Batch);
        self.push(Op::Embed { table, out });
        out
    }

    pub(crate) fn norm(&mut self, random: &mut Random, width: usize) -> Norm {
        let gain = (0..width).map(|_| random.unit() * 2.0 - 0.5).collect();
        let gain = self.weight(WeightData::Vector(gain));
        Norm { gain, eps: random.pick(&[1e-5, 1e-6]) }
    }

    /// The rows of `x` whose logits are requested.
    pub(crate) fn wanted(&mut self, random: &mut Random, x: BufferId, width: usize) -> BufferId {
        let norm = self.norm(random, width);
        let out = self.buffer(BufferKind::F32, width, RowSet::Wanted);
        self.push(Op::RmsNorm { x, norm, out });
        out
    }

    pub(crate) fn plan(&self, rows: usize, wanted: usize, cache: CacheSpec) -> setun_ops::Plan {
        let specs: Vec<WeightSpec> = self.weights.iter().map(WeightData::spec).collect();
        let mut builder = PlanBuilder::new(rows, wanted, specs, cache).keep_buffers();
        for &(kind, width, rows) in &self.buffers {
            builder.buffer(kind, width, rows);
        }
        for op in &self.ops {
            builder.push(op.clone());
        }
        builder.finish().expect("the case fits together")
    }

    /// A case without attention.
    pub(crate) fn finish(self, random: &mut Random) -> Case {
        let (rows, wanted) = (random.pick(&[1, 2, 3, 5, 9, 17, 40]), random.between(1, 5));
        let cache = CacheSpec::smallest(64);
        let plan = self.plan(rows, wanted, cache);
        let (vocab, _) = plan.token_and_position_limits();
        let steps = steps(random, rows, wanted, vocab);
        Case { plan, weights: self.weights, usages: self.usages, steps, blocks: 1 }
    }
}

pub(crate) fn embed(random: &mut Random) -> Case {
    let mut draft = Draft::new();
    let width = random.pick(&WIDTHS);
    let table = random.dense(TOKENS, width);
    draft.embedded_from(table);
    draft.finish(random)
}

pub(crate) fn rms_norm(random: &mut Random) -> Case {
    let mut draft = Draft::new();
    let width = random.pick(&WIDTHS);
    let x = draft.embedded(random, width);
    let norm = draft.norm(random, width);
    let out = draft.buffer(BufferKind::F32, width, RowSet::Batch);
    draft.push(Op::RmsNorm { x, norm, out });
    let wanted = draft.wanted(random, x, width);
    let norm = draft.norm(random, width);
    let out = draft.buffer(BufferKind::F32, width, RowSet::Wanted);
    draft.push(Op::RmsNorm { x: wanted, norm, out });
    draft.finish(random)
}

pub(crate) fn quantize(random: &mut Random) -> Case {
    let mut draft = Draft::new();
    let width = random.pick(&WIDTHS);
    let x = draft.embedded(random, width);
    let norm = draft.norm(random, width);
    for norm in [None, Some(norm)] {
        let out = draft.quantized(random, width, RowSet::Batch);
        draft.push(Op::Quantize { x, norm, out });
    }
    let x = draft.wanted(random, x, width);
    let out = draft.quantized(random, width, RowSet::Wanted);
    draft.push(Op::Quantize { x, norm: None, out });
    draft.finish(random)
}

pub(crate) fn head_norm(random: &mut Random) -> Case {
    let mut draft = Draft::new();
    let (head_dim, heads) = (random.pick(&[2, 16, 20, 64, 80, 128]), random.between(1, 4));
    let column = random.below(9);
    let width = column + heads * head_dim + random.below(9);
    let x = draft.embedded(random, width);
    let norm = draft.norm(random, head_dim);
    draft.push(Op::HeadNorm { x, column, heads, norm });
    draft.finish(random)
}

pub(crate) fn head(random: &mut Random) -> Case {
    let mut draft = Draft::new();
    let (width, vocab) = (random.pick(&WIDTHS), random.pick(&[1, 3, 4, 66, 131, 200]));
    let x = draft.embedded(random, width);
    let wanted = draft.wanted(random, x, width);
    let table = random.dense(vocab, width);
    let table = draft.weight(WeightData::Dense(table));
    for (x, rows) in [(x, RowSet::Batch), (wanted, RowSet::Wanted)] {
        let out = draft.buffer(BufferKind::F32, vocab, rows);
        draft.push(Op::Head { x, table, out });
    }
    draft.finish(random)
}
