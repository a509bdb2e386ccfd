//! `rope_append` over lanes; defined in [`setun_ops::rope_append`].
//!
//! Members claim KV heads, each with the query heads that it serves: in the cache one KV head's
//! vectors are disjoint from another's, whatever the block tables say.

use fearless_simd::{f32x16, prelude::*};
use half::f16;
use setun_ops::{
    cache_values::CacheValues,
    host_cache::{CacheLayer, HostCache},
    op::{BufferId, HeadShape, WeightId},
    quantize::quantize_row,
};

use crate::{
    lanes::{LANES, round_to_f16},
    split::{Grid, OneOf, Tile},
    step::Buffers,
    ternary_dot::TernaryDot,
    walk::Walk,
};

impl<D: TernaryDot> Walk<'_, D> {
    pub(crate) fn rope_append(
        &self,
        buffers: &mut Buffers,
        qkv: BufferId,
        shape: HeadShape,
        rope: WeightId,
        cache: &mut HostCache,
        layer: usize,
    ) {
        let (inputs, rope, spec) = (self.inputs, self.weights.rope(rope), *cache.spec());
        let (rows, d) = (inputs.rows(), shape.head_dim);
        let CacheLayer { keys, values } = &mut cache.layers_mut()[layer];
        let vectors = Vectors { kv_heads: spec.kv_heads, positions: spec.block_positions, d };
        buffers.write_floats(qkv, |_, qkv| {
            let width = qkv.width;
            let qkv = Grid::new(&mut qkv.values[..rows * width], width);
            let (q, kv) = qkv.split_at(shape.query_width());
            let (k, v) = kv.split_at(shape.kv_width());
            let parts = (
                q.tiles(rows.max(1), shape.heads / shape.kv_heads * d),
                k.tiles(rows.max(1), d),
                v.tiles(rows.max(1), d),
                head_slots(keys, vectors),
                head_slots(values, vectors),
            );
            self.each(parts, |_, _, (mut q, mut k, mut v, mut keys, mut values)| {
                for row in 0..rows {
                    let position = inputs.positions[row] as usize;
                    let (cos, sin) = rope.at(position);
                    for head in q.row(row).chunks_exact_mut(d).chain([k.row(row)]) {
                        rotate_head(self.isa.lanes(), &mut head[..2 * cos.len()], cos, sin);
                    }
                    let table = &inputs.block_tables[inputs.slots[row] as usize];
                    let block = table[position / spec.block_positions].0 as usize;
                    let at = position % spec.block_positions;
                    store(self.isa.lanes(), &mut keys, block, at, k.row(row));
                    store(self.isa.lanes(), &mut values, block, at, v.row(row));
                }
            });
        });
    }
}

/// Lane version of [`setun_ops::rope_append::rotate_head`].
fn rotate_head<S: Simd>(simd: S, head: &mut [f32], cos: &[f32], sin: &[f32]) {
    simd.vectorize(
        #[inline(always)]
        || {
            let (first, second) = head.split_at_mut(cos.len());
            let (firsts, rest_first) = first.as_chunks_mut::<LANES>();
            let (seconds, rest_second) = second.as_chunks_mut::<LANES>();
            let (cosines, rest_cos) = cos.as_chunks::<LANES>();
            let (sines, rest_sin) = sin.as_chunks::<LANES>();
            let whole = firsts.iter_mut().zip(seconds).zip(cosines.iter().zip(sines));
            for ((first, second), (cos, sin)) in whole {
                let (cos, sin) = (f32x16::from_slice(simd, cos), f32x16::from_slice(simd, sin));
                let (x, y) = (f32x16::from_slice(simd, first), f32x16::from_slice(simd, second));
                (x * cos - y * sin).store_slice(first);
                (y * cos + x * sin).store_slice(second);
            }
            let rest = rest_first.iter_mut().zip(rest_second).zip(rest_cos.iter().zip(rest_sin));
            for ((first, second), (cos, sin)) in rest {
                let (x, y) = (*first, *second);
                *first = x * cos - y * sin;
                *second = y * cos + x * sin;
            }
        },
    );
}

/// Where a KV head's vectors lie: `[blocks, kv_heads, positions, d]`.
#[derive(Clone, Copy)]
struct Vectors {
    kv_heads: usize,
    positions: usize,
    d: usize,
}

/// The keys or values of a layer by KV head: `f32`, `f16`, or codes and scales.
type HeadSlots<'a> = OneOf<Grid<'a, f32>, Grid<'a, f16>, (Grid<'a, i8>, Grid<'a, f32>)>;

/// Those of one KV head.
type Slots<'p> = OneOf<Tile<'p, f32>, Tile<'p, f16>, (Tile<'p, i8>, Tile<'p, f32>)>;

fn head_slots(values: &mut CacheValues, vectors: Vectors) -> HeadSlots<'_> {
    match values {
        CacheValues::F32(values) => OneOf::A(by_head(values, vectors, vectors.d)),
        CacheValues::F16(values) => OneOf::B(by_head(values, vectors, vectors.d)),
        CacheValues::Int8 { codes, scales } => {
            OneOf::C((by_head(codes, vectors, vectors.d), by_head(scales, vectors, 1)))
        }
    }
}

/// A row is a block, a tile one head in all blocks.
fn by_head<T>(values: &mut [T], vectors: Vectors, width: usize) -> Grid<'_, T> {
    let head = vectors.positions * width;
    let block = vectors.kv_heads * head;
    let blocks = values.len() / block.max(1);
    Grid::new(values, block).tiles(blocks.max(1), head.max(1))
}

/// Rounds `x` `[d]` as [`setun_ops::cache`] says and stores it at a place of a block.
fn store<S: Simd>(simd: S, slots: &mut Slots<'_>, block: usize, at: usize, x: &[f32]) {
    let place = at * x.len()..(at + 1) * x.len();
    match slots {
        OneOf::A(tile) => tile.row(block)[place].copy_from_slice(x),
        OneOf::B(tile) => round_to_f16(simd, x, &mut tile.row(block)[place]),
        OneOf::C((codes, scales)) => {
            scales.row(block)[at] = quantize_row(x, &mut codes.row(block)[place]).scale;
        }
    }
}
