//! Rows of a float table, widened. Bytes: what is read and written.

use divan::{Bencher, counter::BytesCount};
use setun_ops::Op;

use crate::step::{Case, Draft, REPEATS, cases};

#[divan::bench(args = cases(&[1, 128]), max_time = 1)]
fn embed(bencher: Bencher, case: Case) {
    let width = case.shape.hidden;
    let mut draft = Draft::new(case);
    let table = draft.table(128, width);
    let mut step = draft.step(case, width, |plan, out| {
        // The step's first operation embeds as well.
        (1..REPEATS).for_each(|_| plan.push(Op::Embed { table, out }));
    });
    let bytes = BytesCount::new(REPEATS * case.rows * width * 6);
    bencher.counter(bytes).bench_local(|| step.run());
}
