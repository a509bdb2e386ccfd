//! Attention of the last rows of a sequence over each type of cache. Bytes: keys and values up to
//! each row, as the cache keeps them; items: multiply-adds. `from_memory` has a token's layers one
//! after the other, more than caches hold.

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

/// Bytes that are more than caches hold.
const MEMORY_BYTES: usize = 640 << 20;

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

/// Rows at long contexts, by one thread and by two.
fn long_cases(rows: usize) -> Vec<Case> {
    let of = |threads, positions| {
        let steps = step::cases(&[rows]).into_iter().filter(|step| step.shape.name == "2B-4T");
        steps.map(move |step| Case { step: step.with_threads(threads), positions })
    };
    [1, 2].into_iter().flat_map(|threads| of(threads, 4096).chain(of(threads, 16_384))).collect()
}

#[divan::bench(args = long_cases(1), max_time = 2)]
fn from_memory_f16(bencher: Bencher, case: Case) {
    bench_layers(bencher, case, CacheElement::F16, layers_in_memory(case, CacheElement::F16));
}

#[divan::bench(args = long_cases(1), max_time = 2)]
fn from_memory_int8(bencher: Bencher, case: Case) {
    bench_layers(bencher, case, CacheElement::Int8, layers_in_memory(case, CacheElement::Int8));
}

/// A step of a long prompt.
#[divan::bench(args = long_cases(128), max_time = 4)]
fn prompt_f16(bencher: Bencher, case: Case) {
    bench_layers(bencher, case, CacheElement::F16, 1);
}

fn layers_in_memory(case: Case, element: CacheElement) -> usize {
    let layer = 2 * case.positions * case.step.shape.heads.kv_width() * bytes_of(element);
    MEMORY_BYTES.div_ceil(layer)
}

fn bytes_of(element: CacheElement) -> usize {
    match element {
        CacheElement::F32 => 4,
        CacheElement::F16 => 2,
        CacheElement::Int8 => 1,
    }
}

fn bench(bencher: Bencher, case: Case, element: CacheElement) {
    bench_layers(bencher, case, element, 1);
}

fn bench_layers(bencher: Bencher, case: Case, element: CacheElement, layers: usize) {
    let shape = case.step.shape.heads;
    let repeats = if layers == 1 { REPEATS } else { layers };
    let draft = Draft::with_cache(shape, element, case.positions).with_layers(layers);
    let mut step = draft.step(case.step, shape.qkv_width(), |plan, qkv| {
        let out = plan.buffer(BufferKind::F32, shape.query_width(), RowSet::Batch);
        for layer in 0..repeats {
            plan.push(Op::Attention { qkv, shape, layer: layer % layers, out });
        }
    });
    fill(&mut step.cache, shape.head_dim);

    let rows = case.step.rows;
    let pairs: usize = (case.positions - rows + 1..=case.positions).sum();
    let bytes = repeats * 2 * pairs * shape.kv_width() * bytes_of(element);
    let products = repeats * 2 * pairs * shape.query_width();
    bencher
        .counter(BytesCount::new(bytes))
        .counter(ItemsCount::new(products))
        .bench_local(|| step.run());
}

/// Fills a cache with some random vectors, again and again.
fn fill(cache: &mut HostCache, head_dim: usize) {
    let mut random = Random::new(2);
    let some: Vec<f32> = (0..1021 * head_dim).map(|_| random.unit() - 0.5).collect();
    let vectors = cache.blocks() * cache.spec().kv_heads * cache.spec().block_positions;
    let fill = |values: &mut CacheValues| {
        let repeated = some.chunks_exact(head_dim).cycle();
        (0..vectors).zip(repeated).for_each(|(vector, x)| values.store(vector, x));
    };
    for layer in cache.layers_mut() {
        fill(&mut layer.keys);
        fill(&mut layer.values);
    }
}
