//! Cases of `argmax`: ties, penalties and biases on tables that leave choices close.

use crate::{
    Case, Random,
    rows::{Draft, WIDTHS},
    to_u32,
};
use setun_ops::{
    DenseMatrix, Op,
    argmax::ArgmaxRequest,
    dense::DenseValues,
    op::ArgmaxCapacity,
    plan::{BufferKind, RowSet},
};

/// Vocabularies around those of slices that a device may cut them into.
const VOCABS: [usize; 8] = [1, 3, 66, 500, 1003, 2047, 2049, 6001];

pub(crate) fn argmax(random: &mut Random) -> Case {
    let mut draft = Draft::new();
    let vocab = random.pick(&VOCABS);
    let width = if vocab > 1003 { random.pick(&[1, 16]) } else { random.pick(&WIDTHS) };
    let x = draft.embedded(random, width);
    let x = draft.wanted(random, x, width);
    let table = table(random, vocab, width);
    let table = draft.head(table);
    let room = ArgmaxCapacity { touched: random.below(40), biases: random.below(6) };
    let out = draft.buffer(BufferKind::Tokens, 1, RowSet::Wanted);
    draft.push(Op::Argmax { x, table, room, out });
    let mut case = draft.finish(random);
    for step in &mut case.steps {
        step.argmax = choices(random, step.wanted.len(), vocab, room);
    }
    case
}

/// A request for each requested row.
pub(crate) fn choices(
    random: &mut Random,
    wanted: usize,
    vocab: usize,
    room: ArgmaxCapacity,
) -> Vec<ArgmaxRequest> {
    let request = |_| {
        let share = random.pick(&[0.0, 0.05, 0.9]);
        let mut touched = some(random, vocab, share);
        touched.truncate(room.touched);
        let mut biased = some(random, vocab, 0.1);
        biased.truncate(room.biases);
        let biases = biased.into_iter().map(|token| (token, 8.0 * random.unit() - 4.0)).collect();
        let penalty = random.pick(&[1.0, 1.1, 1.3, 0.7, 3.0]);
        ArgmaxRequest { penalty, touched, biases }
    };
    (0..wanted).map(request).collect()
}

fn some(random: &mut Random, vocab: usize, share: f32) -> Vec<u32> {
    (0..vocab).filter(|_| random.chance(share)).map(to_u32).collect()
}

/// Any table, or one whose rows are few different ones.
fn table(random: &mut Random, rows: usize, columns: usize) -> DenseMatrix {
    if random.chance(0.4) {
        return random.dense(rows, columns);
    }
    let different: Vec<Vec<f32>> =
        (0..5).map(|_| (0..columns).map(|_| random.unit() - 0.5).collect()).collect();
    let values: Vec<f32> =
        (0..rows).flat_map(|_| different[random.below(different.len())].clone()).collect();
    DenseMatrix::new(rows, columns, DenseValues::F32(values.into())).expect("sizes agree")
}
