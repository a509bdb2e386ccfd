//! Cases of layers with recurrent states.

use crate::{Case, Random, rows::Draft, steps, to_u32};
use setun_ops::{
    BatchInputs, BlockId, CacheSpec, Op, RecurrentSpec, StateId, WeightData,
    delta_net::{DeltaNetShape, HeadOrder},
    op::{DeltaNetWeights, Norm},
    plan::{BufferKind, RowSet},
    recurrent::StateRows,
};

/// Most rows of a sequence in a step, some chunks of them.
const ROWS: usize = 40;

/// States of each sequence: two that it alternates between, and one for snapshots.
const STATES: usize = 3;

pub(crate) fn sigmoid_gate(random: &mut Random) -> Case {
    let mut draft = Draft::new();
    let (width, column) = (random.between(1, 70), random.below(20));
    let x = draft.embedded(random, width);
    let beyond = random.below(3);
    let gate = draft.embedded(random, column + width + beyond);
    draft.push(Op::SigmoidGate { x, gate, column });
    by_rows(random, draft)
}

pub(crate) fn dense_matmul(random: &mut Random) -> Case {
    let mut draft = Draft::new();
    let columns = random.pick(&crate::rows::WIDTHS);
    let x = draft.embedded(random, columns);
    let (outputs, out_column) = (random.between(1, 90), random.below(9));
    let matrix = random.dense(outputs, columns);
    let weight = draft.weight(WeightData::Dense(matrix));
    let beyond = random.below(4);
    let out = draft.embedded(random, out_column + outputs + beyond);
    draft.push(Op::DenseMatmul { x, weight, out, out_column });
    by_rows(random, draft)
}

pub(crate) fn hadamard(random: &mut Random) -> Case {
    let mut draft = Draft::new();
    let block = random.pick(&[64, 128, 256, 1024]);
    let width = block * random.between(1, 3);
    let x = draft.embedded(random, width);
    let sign = |random: &mut Random| if random.chance(0.5) { 1.0 } else { -1.0 };
    let signs = random.chance(0.7).then(|| (0..width).map(|_| sign(random)).collect());
    let signs = signs.map(|signs| draft.weight(WeightData::Vector(signs)));
    let is_inverse = random.chance(0.5);
    draft.push(Op::Hadamard { x, signs, block, is_inverse });
    by_rows(random, draft)
}

fn by_rows(random: &mut Random, draft: Draft) -> Case {
    let rows = random.pick(&[1, 3, 20]);
    let plan = draft.plan(rows, 1, CacheSpec::smallest(64));
    let steps = steps(random, rows, 1, crate::rows::TOKENS);
    Case { plan, weights: draft.weights, usages: draft.usages, steps, blocks: 1 }
}

pub(crate) fn delta_net(random: &mut Random) -> Case {
    let mut draft = Draft::new();
    let (key_heads, kernel) = (random.between(1, 3), random.between(2, 5));
    let order = |random: &mut Random| random.pick(&[HeadOrder::Grouped, HeadOrder::Tiled]);
    let shape = DeltaNetShape {
        key_heads,
        value_heads: key_heads * random.between(1, 3),
        key_dim: random.pick(&[1, 5, 16, 24, 32]),
        value_dim: random.pick(&[1, 7, 16, 32, 48, 64, 144]),
        kernel,
        order: order(random),
        output_order: order(random),
    };
    let x = draft.embedded(random, shape.input_width());
    let vector = |random: &mut Random, draft: &mut Draft, len: usize, from: f32, to: f32| {
        let values = (0..len).map(|_| from + (to - from) * random.unit()).collect();
        draft.weight(WeightData::Vector(values))
    };
    let weights = DeltaNetWeights {
        conv: vector(random, &mut draft, kernel * shape.channels(), -1.0, 1.0),
        decay: vector(random, &mut draft, shape.value_heads, -4.0, 0.0),
        dt_bias: vector(random, &mut draft, shape.value_heads, -3.0, 3.0),
        norm: Norm { gain: vector(random, &mut draft, shape.value_dim, 0.1, 2.0), eps: 1e-6 },
    };
    let out = draft.buffer(BufferKind::F32, shape.value_width(), RowSet::Batch);
    draft.push(Op::DeltaNet { x, shape, weights, layer: 1, out });
    let tentative = random.below(5);
    let recurrent = Some(RecurrentSpec { layers: 2, shape, tentative });
    let cache = CacheSpec { recurrent, ..CacheSpec::smallest(64) };
    let sequences = random.between(1, 3);
    let plan = draft.plan(sequences * ROWS, 1, cache);
    let mut texts: Vec<_> = (0..sequences).map(|_| Text::default()).collect();
    let steps = (0..5).map(|_| step(random, &mut texts, tentative)).collect();
    let blocks = sequences * 4;
    Case { plan, weights: draft.weights, usages: draft.usages, steps, blocks }
}

/// A sequence between steps.
#[derive(Default)]
struct Text {
    state: Option<(usize, usize)>, // of its own, and its base
    end: usize,                    // with tentative rows
}

/// Rows for some of the sequences; tentative ones of the step before may be dropped.
fn step(random: &mut Random, texts: &mut [Text], tentative: usize) -> BatchInputs {
    let blocks = |slot: usize| (0..4).map(move |block| BlockId(to_u32(4 * slot + block)));
    let block_tables = (0..texts.len()).map(|slot| blocks(slot).collect()).collect();
    let mut step = BatchInputs { block_tables, ..BatchInputs::default() };
    let mut slots: Vec<usize> = (0..texts.len()).collect();
    if random.chance(0.5) {
        slots.reverse();
    }
    step.states = vec![StateRows::default(); texts.len()];
    for slot in slots {
        let text = &mut texts[slot];
        let base = text.state.map_or(0, |(_, base)| base);
        let first = base + random.below(text.end - base + 1);
        let rows = random.pick(&[1, 1, 2, 5, 17, ROWS]);
        for position in first..first + rows {
            step.tokens.push(to_u32(random.below(crate::rows::TOKENS)));
            step.positions.push(to_u32(position));
            step.slots.push(to_u32(slot));
        }
        let end = first + rows;
        let certain = end - random.below(tentative.min(rows - 1) + 1);
        let own = text.state.map_or(0, |(own, _)| own);
        let target = if random.chance(0.4) { 1 - own } else { own };
        let id = |state: usize| StateId(to_u32(STATES * slot + state));
        let mut stored = vec![(id(target), to_u32(certain))];
        if random.chance(0.4) && certain > base {
            let taken = base + 1 + random.below(certain - base);
            stored.insert(0, (id(STATES - 1), to_u32(taken)));
        }
        let loaded = text.state.map(|(own, base)| (id(own), to_u32(base)));
        step.states[slot] = StateRows { loaded, stored };
        (text.state, text.end) = (Some((target, certain)), end);
    }
    step
}
