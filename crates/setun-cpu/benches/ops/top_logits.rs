//! The best token, found by the screen of a table of f16. Bytes: the screen's integers, one for
//! each element of the table; items: multiply-adds with them.

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
fn top_logits(bencher: Bencher, case: Case) {
    let (width, vocab) = (case.shape.hidden, case.shape.vocab);
    let mut draft = Draft::new(case);
    let table = draft.table(vocab, width);
    let norm = draft.norm(width);
    let mut step = draft.step(case, width, |plan, hidden| {
        let x = plan.buffer(BufferKind::F32, width, RowSet::Wanted);
        plan.push(Op::RmsNorm { x: hidden, norm, out: x });
        let out = plan.buffer(BufferKind::Ranked, 16, RowSet::Wanted);
        plan.push(Op::TopLogits { x, table, out });
    });
    bencher
        .counter(BytesCount::new(vocab * width))
        .counter(ItemsCount::new(vocab * width * case.rows))
        .bench_local(|| step.run());
}
