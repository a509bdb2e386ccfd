//! Rotations of queries and keys, and appending to a cache. Bytes: the rows, read and written.

use divan::{Bencher, counter::BytesCount};
use setun_ops::{CacheElement, Op, WeightData, rope_append::RopeTable};

use crate::step::{Case, Draft, REPEATS, cases};

#[divan::bench(args = cases(&[1, 128]), max_time = 1)]
fn f32(bencher: Bencher, case: Case) {
    bench(bencher, case, CacheElement::F32);
}

#[divan::bench(args = cases(&[1, 128]), max_time = 1)]
fn f16(bencher: Bencher, case: Case) {
    bench(bencher, case, CacheElement::F16);
}

#[divan::bench(args = cases(&[1, 128]), max_time = 1)]
fn int8(bencher: Bencher, case: Case) {
    bench(bencher, case, CacheElement::Int8);
}

fn bench(bencher: Bencher, case: Case, element: CacheElement) {
    let shape = case.shape.heads;
    let mut draft = Draft::with_cache(shape, element, case.rows);
    let frequencies: Vec<f32> = (0..shape.head_dim / 2).map(|_| draft.random.unit()).collect();
    let table = RopeTable::new(case.rows, &frequencies).expect("finite frequencies");
    let rope = draft.weight(WeightData::Rope(table));
    let mut step = draft.step(case, shape.qkv_width(), |plan, qkv| {
        let op = Op::RopeAppend { qkv, shape, rope, layer: 0 };
        (0..REPEATS).for_each(|_| plan.push(op.clone()));
    });
    let bytes = BytesCount::new(REPEATS * case.rows * shape.qkv_width() * 8);
    bencher.counter(bytes).bench_local(|| step.run());
}
