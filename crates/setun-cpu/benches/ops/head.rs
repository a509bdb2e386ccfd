//! All logits from a table of f16. Bytes: the table, once; items: multiply-adds.

use divan::{
    Bencher,
    counter::{BytesCount, ItemsCount},
};
use setun_ops::{
    Op,
    plan::{BufferKind, RowSet},
};

use crate::step::{Case, Draft, cases};

#[divan::bench(args = cases(&[1, 4, 16]), max_time = 1)]
fn head(bencher: Bencher, case: Case) {
    let (width, vocab) = (case.shape.hidden, case.shape.vocab);
    let mut draft = Draft::new(case);
    let table = draft.table(vocab, width);
    let mut step = draft.step(case, width, |plan, x| {
        let out = plan.buffer(BufferKind::F32, vocab, RowSet::Batch);
        plan.push(Op::Head { x, table, out });
    });
    bencher
        .counter(BytesCount::new(vocab * width * 2))
        .counter(ItemsCount::new(vocab * width * case.rows))
        .bench_local(|| step.run());
}
