//! int8 codes of rows of the feed-forward part, with and without a norm before. Bytes: the rows,
//! read, and the codes, written.

use divan::{Bencher, counter::BytesCount};
use setun_ops::{
    Op,
    plan::{BufferKind, RowSet},
};

use crate::step::{Case, Draft, REPEATS, cases};

#[divan::bench(args = cases(&[1, 128]), max_time = 1)]
fn quantize(bencher: Bencher, case: Case) {
    bench(bencher, case, false);
}

#[divan::bench(args = cases(&[1, 128]), max_time = 1)]
fn norm_and_quantize(bencher: Bencher, case: Case) {
    bench(bencher, case, true);
}

fn bench(bencher: Bencher, case: Case, normed: bool) {
    let width = case.shape.ffn;
    let mut draft = Draft::new(case);
    let norm = normed.then(|| draft.norm(width));
    let mut step = draft.step(case, width, |plan, x| {
        let out = plan.buffer(BufferKind::Quantized { group: None }, width, RowSet::Batch);
        (0..REPEATS).for_each(|_| plan.push(Op::Quantize { x, norm, out }));
    });
    let bytes = BytesCount::new(REPEATS * case.rows * width * 5);
    bencher.counter(bytes).bench_local(|| step.run());
}
