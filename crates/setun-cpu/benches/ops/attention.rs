//! Attention of the last rows of a sequence over each type of cache. Bytes: keys and values up to
//! each row, as the cache keeps them; items: multiply-adds.

use std::fmt;

use divan::{
    Bencher,
    counter::{BytesCount, ItemsCount},
};
use setun_ops::{
    CacheElement, Op,
    cache_values::CacheValues,
    host_cache::HostCache,
    plan::{BufferKind, RowSet},
    random::Random,
};

use crate::step::{self, Draft};

/// Repetitions in a step.
const REPEATS: usize = 4;

#[derive(Clone, Copy, Debug)]
struct Case {
    step: step::Case,
    positions: usize,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} positions", self.step, self.positions)
    }
}

/// Decode at two lengths, and a step of a prompt.
fn cases() -> Vec<Case> {
    let of = |rows, positions| {
        step::cases(&[rows]).into_iter().map(move |step| Case { step, positions })
    };
    of(1, 512).chain(of(1, 4096)).chain(of(128, 512)).collect()
}

#[divan::bench(args = cases(), max_time = 1)]
fn f32(bencher: Bencher, case: Case) {
    bench(bencher, case, CacheElement::F32);
}

#[divan::bench(args = cases(), max_time = 1)]
fn f16(bencher: Bencher, case: Case) {
    bench(bencher, case, CacheElement::F16);
}

#[divan::bench(args = cases(), max_time = 1)]
fn int8(bencher: Bencher, case: Case) {
    bench(bencher, case, CacheElement::Int8);
}

fn bench(bencher: Bencher, case: Case, element: CacheElement) {
    let shape = case.step.shape.heads;
    let draft = Draft::with_cache(shape, element, case.positions);
    let mut step = draft.step(case.step, shape.qkv_width(), |plan, qkv| {
        let out = plan.buffer(BufferKind::F32, shape.query_width(), RowSet::Batch);
        let op = Op::Attention { qkv, shape, layer: 0, out };
        (0..REPEATS).for_each(|_| plan.push(op.clone()));
    });
    fill(&mut step.cache, shape.head_dim);

    let rows = case.step.rows;
    let pairs: usize = (case.positions - rows + 1..=case.positions).sum();
    let element_bytes = match element {
        CacheElement::F32 => 4,
        CacheElement::F16 => 2,
        CacheElement::Int8 => 1,
    };
    let bytes = REPEATS * 2 * pairs * shape.kv_width() * element_bytes;
    let products = REPEATS * 2 * pairs * shape.query_width();
    bencher
        .counter(BytesCount::new(bytes))
        .counter(ItemsCount::new(products))
        .bench_local(|| step.run());
}

fn fill(cache: &mut HostCache, head_dim: usize) {
    let mut random = Random::new(2);
    let vectors = cache.blocks() * cache.spec().kv_heads * cache.spec().block_positions;
    let mut fill = |values: &mut CacheValues| {
        for vector in 0..vectors {
            let x: Vec<f32> = (0..head_dim).map(|_| random.unit() - 0.5).collect();
            values.store(vector, &x);
        }
    };
    for layer in cache.layers_mut() {
        fill(&mut layer.keys);
        fill(&mut layer.values);
    }
}
