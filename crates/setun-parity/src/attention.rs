//! Cases with a cache: ragged steps of several sequences.

use crate::{Case, Random, rows::Draft, to_u32};
use setun_ops::{
    BatchInputs, BlockId, CacheElement, CacheSpec, Op, WeightData,
    attention::SPAN,
    op::HeadShape,
    plan::{BufferKind, RowSet},
    rope_append::RopeTable,
};

/// Positions that the tables of a case cover: some spans and a part of one.
pub(crate) const POSITIONS: usize = 200;

/// Positions of a context that is long enough to be shared out span by span.
const LONG: usize = 720;

pub(crate) fn attention(random: &mut Random) -> Case {
    let (draft, cache) = appended(random, POSITIONS);
    let rows = random.pick(&[1, 3, 8, 40]);
    let plan = draft.plan(rows, 1, cache);
    let (vocab, _) = plan.token_and_position_limits();
    let (steps, blocks) = ragged_steps(random, rows, 1, vocab, cache.block_positions);
    Case { plan, weights: draft.weights, usages: draft.usages, steps, blocks }
}

/// Prompts of some sequences in a step each, up to a few positions around the ends of spans, then
/// steps of few rows.
pub(crate) fn long_attention(random: &mut Random) -> Case {
    let (draft, cache) = appended(random, LONG);
    let sequences = random.between(1, 2);
    let plan = draft.plan(sequences * LONG, 1, cache);
    let (vocab, _) = plan.token_and_position_limits();
    let (block_tables, blocks) = shuffled_blocks(random, sequences, LONG, cache.block_positions);
    let mut lengths = vec![0; sequences];
    let mut append = |random: &mut Random, counts: &[usize]| {
        let mut step = BatchInputs { block_tables: block_tables.clone(), ..BatchInputs::default() };
        for (slot, &count) in counts.iter().enumerate() {
            for _ in 0..count {
                step.tokens.push(to_u32(random.below(vocab)));
                step.positions.push(to_u32(lengths[slot]));
                step.slots.push(to_u32(slot));
                lengths[slot] += 1;
            }
        }
        step
    };
    let prompts: Vec<usize> = (0..sequences)
        .map(|_| random.pick(&[3, 5, 8, 10]) * SPAN + random.between(0, 3) - 2)
        .collect();
    let mut steps = vec![append(random, &prompts)];
    for _ in 0..4 {
        let counts: Vec<usize> = (0..sequences).map(|_| random.between(1, 3)).collect();
        steps.push(append(random, &counts));
    }
    Case { plan, weights: draft.weights, usages: draft.usages, steps, blocks }
}

/// As [`attention`], of heads whose first columns turn, with gates beside them.
pub(crate) fn partial_rope(random: &mut Random) -> Case {
    let (shape, cache) = shapes(random, 1);
    let columns = 2 * random.between(1, shape.head_dim / 2);
    let beside = random.pick(&[0, 3, shape.query_width()]);
    let draft = appended_to(random, (shape, columns, beside), POSITIONS);
    let rows = random.pick(&[1, 3, 40]);
    let plan = draft.plan(rows, 1, cache);
    let (vocab, _) = plan.token_and_position_limits();
    let (steps, blocks) = ragged_steps(random, rows, 1, vocab, cache.block_positions);
    Case { plan, weights: draft.weights, usages: draft.usages, steps, blocks }
}

/// Rows of queries, keys and values, appended and attended to.
fn appended(random: &mut Random, positions: usize) -> (Draft, CacheSpec) {
    let (shape, cache) = shapes(random, 1);
    (appended_to(random, (shape, shape.head_dim, 0), positions), cache)
}

/// Of heads of which this many columns turn, with as many columns beside them.
fn appended_to(
    random: &mut Random,
    (shape, columns, beside): (HeadShape, usize, usize),
    positions: usize,
) -> Draft {
    let mut draft = Draft::new();
    let qkv = draft.embedded(random, shape.qkv_width() + beside);
    let rope = draft.weight(rope(random, columns, positions));
    draft.push(Op::RopeAppend { qkv, shape, rope, layer: 0 });
    let out = draft.buffer(BufferKind::F32, shape.query_width(), RowSet::Batch);
    draft.push(Op::Attention { qkv, shape, layer: 0, out });
    draft
}

/// Heads and the cache of a model of some layers.
pub(crate) fn shapes(random: &mut Random, layers: usize) -> (HeadShape, CacheSpec) {
    let kv_heads = random.between(1, 3);
    let shape = HeadShape {
        heads: kv_heads * random.between(1, 4),
        kv_heads,
        head_dim: random.pick(&[2, 10, 16, 32, 48, 64, 80, 96, 100]),
    };
    let cache = CacheSpec {
        layers,
        kv_heads,
        head_dim: shape.head_dim,
        block_positions: random.pick(&[1, 4, 16, 32, 64, 128]),
        element: random.pick(&[CacheElement::F32, CacheElement::F16, CacheElement::Int8]),
        recurrent: None,
    };
    (shape, cache)
}

pub(crate) fn rope(random: &mut Random, head_dim: usize, positions: usize) -> WeightData {
    let frequencies: Vec<f32> = (0..head_dim / 2).map(|_| random.unit()).collect();
    WeightData::Rope(RopeTable::new(positions, &frequencies).expect("finite frequencies"))
}

/// Steps in which sequences grow by different numbers of rows, and the blocks they need.
pub(crate) fn ragged_steps(
    random: &mut Random,
    rows: usize,
    wanted: usize,
    vocab: usize,
    block_positions: usize,
) -> (Vec<BatchInputs>, usize) {
    let sequences = random.between(1, 3);
    let (block_tables, blocks) = shuffled_blocks(random, sequences, POSITIONS, block_positions);
    let mut lengths = vec![0; sequences];
    let steps = (0..5).map(|_| {
        let mut step = BatchInputs { block_tables: block_tables.clone(), ..BatchInputs::default() };
        for _ in 0..random.between(1, rows) {
            let slot = random.below(sequences);
            if lengths[slot] < POSITIONS {
                step.tokens.push(to_u32(random.below(vocab)));
                step.positions.push(to_u32(lengths[slot]));
                step.slots.push(to_u32(slot));
                lengths[slot] += 1;
            }
        }
        let picked = (0..step.rows()).filter(|_| random.chance(0.5)).take(wanted);
        step.wanted = picked.map(to_u32).collect();
        step
    });
    let steps: Vec<BatchInputs> = steps.collect();
    (steps, blocks)
}

/// Block tables of some sequences, whose blocks lie in no order, and how many blocks there are.
fn shuffled_blocks(
    random: &mut Random,
    sequences: usize,
    positions: usize,
    block_positions: usize,
) -> (Vec<Vec<BlockId>>, usize) {
    let blocks_each = positions.div_ceil(block_positions);
    let mut blocks: Vec<BlockId> =
        (0..sequences * blocks_each).map(|block| BlockId(to_u32(block))).collect();
    for index in 0..blocks.len() {
        let other = random.below(blocks.len());
        blocks.swap(index, other);
    }
    (blocks.chunks(blocks_each).map(<[BlockId]>::to_vec).collect(), blocks.len())
}
