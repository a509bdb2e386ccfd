//! A norm over each query head, in place. Bytes: the rows, read and written.

use divan::{Bencher, counter::BytesCount};
use setun_ops::Op;

use crate::step::{Case, Draft, REPEATS, cases};

#[divan::bench(args = cases(&[1, 128]), max_time = 1)]
fn head_norm(bencher: Bencher, case: Case) {
    let heads = case.shape.heads;
    let mut draft = Draft::new(case);
    let norm = draft.norm(heads.head_dim);
    let mut step = draft.step(case, heads.qkv_width(), |plan, x| {
        let op = Op::HeadNorm { x, column: 0, heads: heads.heads, norm };
        (0..REPEATS).for_each(|_| plan.push(op.clone()));
    });
    let bytes = BytesCount::new(REPEATS * case.rows * heads.query_width() * 8);
    bencher.counter(bytes).bench_local(|| step.run());
}
