//! Gate and up with relu², half of the gates closed, over several pairs of matrices. Bytes: the
//! weights, once, whether they had to be read or not; items: multiply-adds likewise.

use divan::{
    Bencher,
    counter::{BytesCount, ItemsCount},
};
use setun_ops::{
    Op,
    op::{Activation, Linear},
    plan::{BufferKind, RowSet},
    ternary::row_bytes,
};

use crate::step::{Case, Draft, cases};

/// Pairs of matrices: of the larger shape they exceed the caches, as a model does.
const PAIRS: usize = 4;

#[divan::bench(args = cases(&[1, 4, 128]), max_time = 1)]
fn relu_squared(bencher: Bencher, case: Case) {
    bench(bencher, case, Activation::ReluSquared);
}

#[divan::bench(args = cases(&[1, 4, 128]), max_time = 1)]
fn silu(bencher: Bencher, case: Case) {
    bench(bencher, case, Activation::Silu);
}

fn bench(bencher: Bencher, case: Case, activation: Activation) {
    let (hidden, ffn) = (case.shape.hidden, case.shape.ffn);
    let mut draft = Draft::new(case);
    let gates = draft.matrices(PAIRS, ffn, hidden);
    let ups = draft.matrices(PAIRS, ffn, hidden);
    let mut step = draft.step(case, hidden, |plan, input| {
        let x = plan.buffer(BufferKind::Quantized { group: None }, hidden, RowSet::Batch);
        plan.push(Op::Quantize { x: input, norm: None, out: x });
        let out = plan.buffer(BufferKind::F32, ffn, RowSet::Batch);
        for (gate, up) in gates.into_iter().zip(ups) {
            let linear = |weight| Linear { x, weight, bias: None };
            plan.push(Op::Gate { gate: linear(gate), up: linear(up), activation, out });
        }
    });
    bencher
        .counter(BytesCount::new(PAIRS * 2 * ffn * row_bytes(hidden)))
        .counter(ItemsCount::new(PAIRS * 2 * ffn * hidden * case.rows))
        .bench_local(|| step.run());
}
