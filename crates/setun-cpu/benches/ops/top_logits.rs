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

/// Of all tokens none stands out: the best logit lies 4.3 deviations above their mean.
#[divan::bench(args = cases(&[1, 4, 16]), max_time = 1)]
fn top_logits(bencher: Bencher, case: Case) {
    bench(bencher, case, 0.0);
}

/// The best logit of each row lies about 9 deviations above the mean, as in a text.
#[divan::bench(args = cases(&[1, 4, 16]), max_time = 1)]
fn top_logits_apart(bencher: Bencher, case: Case) {
    bench(bencher, case, 9.0);
}

fn bench(bencher: Bencher, case: Case, deviations: f32) {
    let (width, vocab) = (case.shape.hidden, case.shape.vocab);
    let mut draft = Draft::new(case);
    let hidden = draft.embed(width).to_vec();
    let bell = |_| (0..6).map(|_| draft.random.unit() - 0.5).sum::<f32>() * 2.0_f32.sqrt();
    let some: Vec<f32> = (0..65_537).map(bell).collect();
    let mut values: Vec<f32> = some.into_iter().cycle().take(vocab * width).collect();
    let best = values.chunks_exact_mut(width).skip(1000).step_by(100);
    for (row, x) in best.zip(hidden.chunks_exact(width)) {
        let norm = x.iter().map(|x| x * x).sum::<f32>().sqrt();
        row.iter_mut().zip(x).for_each(|(w, x)| *w += deviations * x / norm);
    }
    let table = draft.table_of(width, values);
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
