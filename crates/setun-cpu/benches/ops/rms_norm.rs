//! A norm over the residual stream. Bytes: the rows, read and written.

use divan::{Bencher, counter::BytesCount};
use setun_ops::{
    Op,
    plan::{BufferKind, RowSet},
};

use crate::step::{Case, Draft, REPEATS, cases};

#[divan::bench(args = cases(&[1, 128]), max_time = 1)]
fn rms_norm(bencher: Bencher, case: Case) {
    let width = case.shape.hidden;
    let mut draft = Draft::new(case);
    let norm = draft.norm(width);
    let mut step = draft.step(case, width, |plan, x| {
        let out = plan.buffer(BufferKind::F32, width, RowSet::Batch);
        (0..REPEATS).for_each(|_| plan.push(Op::RmsNorm { x, norm, out }));
    });
    let bytes = BytesCount::new(REPEATS * case.rows * width * 8);
    bencher.counter(bytes).bench_local(|| step.run());
}
