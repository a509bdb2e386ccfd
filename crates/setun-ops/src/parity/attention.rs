//! Cases with a cache: ragged steps of several sequences.

use super::{Case, Random, rows::Draft, to_u32};
use crate::{
    BatchInputs, BlockId, CacheElement, CacheSpec, Op, WeightData,
    op::HeadShape,
    plan::{BufferKind, RowSet},
    rope_append::RopeTable,
};

/// Positions that the tables of a case cover: some spans and a part of one.
pub(super) const POSITIONS: usize = 200;

pub(super) fn attention(random: &mut Random) -> Case {
    let mut draft = Draft::new();
    let (shape, cache) = shapes(random, 1);
    let qkv = draft.embedded(random, shape.qkv_width());
    let rope = draft.weight(rope(random, shape.head_dim));
    draft.push(Op::RopeAppend { qkv, shape, rope, layer: 0 });
    let out = draft.buffer(BufferKind::F32, shape.query_width(), RowSet::Batch);
    draft.push(Op::Attention { qkv, shape, layer: 0, out });

    let rows = random.pick(&[1, 3, 8, 40]);
    let plan = draft.plan(rows, 1, cache);
    let (vocab, _) = plan.token_and_position_limits();
    let (steps, blocks) = ragged_steps(random, rows, 1, vocab, cache.block_positions);
    Case { plan, weights: draft.weights, usages: draft.usages, steps, blocks }
}

/// Heads and the cache of a model of some layers.
pub(super) fn shapes(random: &mut Random, layers: usize) -> (HeadShape, CacheSpec) {
    let kv_heads = random.between(1, 3);
    let shape = HeadShape {
        heads: kv_heads * random.between(1, 4),
        kv_heads,
        head_dim: random.pick(&[2, 10, 16, 32, 48, 64, 80]),
    };
    let cache = CacheSpec {
        layers,
        kv_heads,
        head_dim: shape.head_dim,
        block_positions: random.pick(&[1, 4, 16, 32, 64, 128]),
        element: random.pick(&[CacheElement::F32, CacheElement::F16, CacheElement::Int8]),
    };
    (shape, cache)
}

pub(super) fn rope(random: &mut Random, head_dim: usize) -> WeightData {
    let frequencies: Vec<f32> = (0..head_dim / 2).map(|_| random.unit()).collect();
    WeightData::Rope(RopeTable::new(POSITIONS, &frequencies).expect("finite frequencies"))
}

/// Steps in which sequences grow by different numbers of rows, and the blocks they need.
pub(super) fn ragged_steps(
    random: &mut Random,
    rows: usize,
    wanted: usize,
    vocab: usize,
    block_positions: usize,
) -> (Vec<BatchInputs>, usize) {
    let sequences = random.between(1, 3);
    let blocks_each = POSITIONS.div_ceil(block_positions);
    let mut blocks: Vec<BlockId> =
        (0..sequences * blocks_each).map(|block| BlockId(to_u32(block))).collect();
    for index in 0..blocks.len() {
        let other = random.below(blocks.len());
        blocks.swap(index, other);
    }
    let block_tables: Vec<Vec<BlockId>> =
        blocks.chunks(blocks_each).map(<[BlockId]>::to_vec).collect();

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
    (steps, blocks.len())
}
