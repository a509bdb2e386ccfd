//! Cases of whole small models.

use crate::{
    Case, Random,
    argmax::choices,
    attention::{POSITIONS, ragged_steps, rope, shapes},
    linear::linear,
    rows::Draft,
    to_u32,
    top_logits::requests,
};
use setun_ops::{
    Op, WeightData,
    op::ArgmaxCapacity,
    op::{Activation, BufferId},
    plan::{BufferKind, RowSet},
    top_logits::TopLogitsRequest,
};

/// Tokens of the vocabulary.
const VOCAB: usize = 50;

pub(crate) fn model(random: &mut Random) -> Case {
    let mut draft = Draft::new();
    let layers = random.between(1, 2);
    let (shape, cache) = shapes(random, layers);
    let (hidden, ffn) = (random.pick(&[32, 100, 128, 160]), random.pick(&[48, 130, 320]));
    let activation = random.pick(&[Activation::ReluSquared, Activation::Silu]);
    let table = random.dense(VOCAB, hidden);
    let x = draft.embedded_from(table);
    let rope = draft.weight(rope(random, shape.head_dim, POSITIONS));
    for layer in 0..layers {
        let quantized = quantize(&mut draft, random, x, hidden);
        let qkv = draft.buffer(BufferKind::F32, shape.qkv_width(), RowSet::Batch);
        project(&mut draft, random, quantized, hidden, None, qkv);
        if random.chance(0.3) {
            for (column, heads) in [(0, shape.heads), (shape.query_width(), shape.kv_heads)] {
                let norm = draft.norm(random, shape.head_dim);
                draft.push(Op::HeadNorm { x: qkv, column, heads, norm });
            }
        }
        draft.push(Op::RopeAppend { qkv, shape, rope, layer });
        let attended = draft.buffer(BufferKind::F32, shape.query_width(), RowSet::Batch);
        draft.push(Op::Attention { qkv, shape, layer, out: attended });
        let quantized = quantize(&mut draft, random, attended, shape.query_width());
        project(&mut draft, random, quantized, shape.query_width(), Some(x), x);

        let quantized = quantize(&mut draft, random, x, hidden);
        let (gate, up) = (random.ternary(ffn, hidden), random.ternary(ffn, hidden));
        let gate = linear(&mut draft, random, quantized, gate);
        let up = linear(&mut draft, random, quantized, up);
        let gated = draft.buffer(BufferKind::F32, ffn, RowSet::Batch);
        draft.push(Op::Gate { gate, up, activation, out: gated });
        let quantized = quantize(&mut draft, random, gated, ffn);
        project(&mut draft, random, quantized, ffn, Some(x), x);
    }
    let normed = draft.wanted(random, x, hidden);
    let head = random.dense(VOCAB, hidden);
    let table = draft.weight(WeightData::Dense(head));
    let out = draft.buffer(BufferKind::F32, VOCAB, RowSet::Wanted);
    draft.push(Op::Head { x: normed, table, out });
    let capacity = random.between(1, VOCAB);
    let out = draft.buffer(BufferKind::Ranked, capacity, RowSet::Wanted);
    draft.push(Op::TopLogits { x: normed, table, out });

    let room = ArgmaxCapacity { touched: random.below(12), biases: random.below(4) };
    let out = draft.buffer(BufferKind::Tokens, 1, RowSet::Wanted);
    draft.push(Op::Argmax { x: normed, table, room, out });

    let (rows, wanted) = (random.pick(&[1, 4, 16]), random.between(1, 4));
    let plan = draft.plan(rows, wanted, cache);
    let (mut steps, blocks) = ragged_steps(random, rows, wanted, VOCAB, cache.block_positions);
    for step in &mut steps {
        step.top_logits = requests(random, step.wanted.len(), VOCAB, capacity);
        step.argmax = choices(random, step.wanted.len(), VOCAB, room);
    }
    Case { plan, weights: draft.weights, usages: draft.usages, steps, blocks }
}

/// Codes of `x`, mostly normed before.
fn quantize(draft: &mut Draft, random: &mut Random, x: BufferId, width: usize) -> BufferId {
    let norm = random.chance(0.7).then(|| draft.norm(random, width));
    let out = draft.quantized(random, width, RowSet::Batch);
    draft.push(Op::Quantize { x, norm, out });
    out
}

/// A layer that fills `out`.
fn project(
    draft: &mut Draft,
    random: &mut Random,
    x: BufferId,
    columns: usize,
    residual: Option<BufferId>,
    out: BufferId,
) {
    let outputs = draft.width(out);
    let matrix = random.ternary(outputs, columns);
    let linear = linear(draft, random, x, matrix);
    draft.maybe_sparse(random, &linear);
    draft.push(Op::TernaryMatmul { linear, residual, out, out_column: 0 });
}

/// A small model and the first of `steps` a multi-step, of some sequences
/// at different positions.
///
/// # Panics
///
/// Never: the model's plan ends in a choice.
#[must_use]
pub fn multi_step(seed: u64, steps: usize) -> Case {
    let mut random = Random::new(seed);
    let mut case = model(&mut random);
    let (vocab, mut room) = case.plan.argmax_limits().expect("a choice");
    room.touched = room.touched.saturating_sub(steps - 1);
    let mut inputs = std::mem::take(&mut case.steps[0]);
    let rows = inputs.block_tables.len().min(case.plan.rows()).min(case.plan.wanted());
    inputs.tokens = (0..rows).map(|_| to_u32(random.below(vocab))).collect();
    inputs.positions = (0..rows).map(|_| to_u32(random.below(150))).collect();
    inputs.slots = (0..rows).map(to_u32).collect();
    inputs.wanted = (0..rows).map(to_u32).collect();
    inputs.top_logits.resize_with(rows, || TopLogitsRequest { k: 1, ..<_>::default() });
    inputs.argmax = choices(&mut random, rows, vocab, room);
    for request in &mut inputs.argmax {
        if room.touched == 0 {
            request.penalty = 1.0;
        }
    }
    case.steps = vec![inputs];
    case
}
