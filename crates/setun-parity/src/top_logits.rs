//! Cases of `top_logits`: tables that are hard to rank, requests of all sizes.

use half::bf16;

use crate::{
    Case, Random,
    rows::{Draft, WIDTHS},
    to_u32,
};
use setun_ops::{
    DenseMatrix, Op, WeightData,
    cache::round_f16,
    dense::DenseValues,
    noise::Noise,
    plan::{BufferKind, RowSet},
    top_logits::{NoisyScores, TopLogitsRequest},
};

/// Vocabularies of most cases, and some that leave more candidates than a screen can list.
const VOCABS: [usize; 7] = [1, 3, 40, 66, 131, 500, 1003];
const LARGE_VOCABS: [usize; 2] = [4500, 6001];

pub(crate) fn top_logits(random: &mut Random) -> Case {
    ranked(random, requests)
}

/// The same where most rows ask for the best by noisy scores.
pub(crate) fn noisy_top_logits(random: &mut Random) -> Case {
    ranked(random, |random, wanted, vocab, capacity| {
        let mut requests = requests(random, wanted, vocab, capacity);
        for request in &mut requests {
            if random.chance(0.8) {
                // Logits are of all magnitudes, so noise may decide alone, or nothing.
                let temperature = random.pick(&[1e-6, 0.1, 0.7, 1.0, 30.0, 1e20]);
                let noise = Noise::new(random.bits());
                request.noise = Some(NoisyScores { noise, temperature });
                request.within = None;
                // Some of the places go to the best by logit.
                request.top = random.pick(&[0, request.k / 2, request.k - 1]);
                request.k -= request.top;
                let has_room = request.top > 0 && request.entries() < capacity;
                request.sum = has_room && random.chance(0.5);
            }
        }
        requests
    })
}

fn ranked(
    random: &mut Random,
    requests: impl Fn(&mut Random, usize, usize, usize) -> Vec<TopLogitsRequest>,
) -> Case {
    let mut draft = Draft::new();
    let large = random.chance(0.04);
    let vocab = if large { random.pick(&LARGE_VOCABS) } else { random.pick(&VOCABS) };
    let width = if large { random.pick(&[16, 96]) } else { random.pick(&WIDTHS) };
    let x = if random.chance(0.2) {
        draft.embedded(random, width)
    } else {
        let values = DenseValues::F32((0..12 * width).map(|_| bell(random)).collect());
        draft.embedded_from(DenseMatrix::new(12, width, values).expect("sizes agree"))
    };
    let x = draft.wanted(random, x, width);
    let table = draft.weight(WeightData::Dense(table(random, vocab, width)));
    let capacity = random.between(1, 80);
    let out = draft.buffer(BufferKind::Ranked, capacity, RowSet::Wanted);
    draft.push(Op::TopLogits { x, table, out });
    let mut case = draft.finish(random);
    for step in &mut case.steps {
        step.top_logits = requests(random, step.wanted.len(), vocab, capacity);
    }
    case
}

/// A request for each requested row, each of its own size.
pub(crate) fn requests(
    random: &mut Random,
    wanted: usize,
    vocab: usize,
    capacity: usize,
) -> Vec<TopLogitsRequest> {
    let request = |_| {
        let share = random.pick(&[0.0, 0.0, 0.05, 0.9]);
        let mut touched: Vec<u32> =
            (0..vocab).filter(|_| random.chance(share)).map(to_u32).collect();
        touched.truncate(capacity.min(vocab) - 1);
        let most = (vocab - touched.len()).min(capacity - touched.len()).min(50);
        // Beside logits of all magnitudes.
        let within = random.pick(&[0.0, 1e-3, 0.3, 3.0, 1e15]) * random.unit();
        let within = random.chance(0.4).then_some(within);
        let k = random.pick(&[1, most.div_ceil(3), most]);
        TopLogitsRequest { k, within, touched, ..<_>::default() }
    };
    (0..wanted).map(request).collect()
}

/// A table that tries to fool a screen.
fn table(random: &mut Random, rows: usize, columns: usize) -> DenseMatrix {
    let kind = random.below(8);
    if kind == 0 {
        return random.dense(rows, columns);
    }
    let common: Vec<f32> = (0..columns).map(|_| bell(random)).collect();
    let mut values = Vec::with_capacity(rows * columns);
    for _ in 0..rows {
        let mut row: Vec<f32> = match kind {
            1 | 2 => common.clone(),
            _ => (0..columns).map(|_| bell(random)).collect(),
        };
        match kind {
            // Some equal, some in all but one bit.
            2 if random.chance(0.5) => {
                let place = &mut row[random.below(columns)];
                *place = f32::from_bits(place.to_bits() ^ 1);
            }
            3 => row[random.below(columns)] *= 3000.0,
            4 if random.chance(0.7) => row.fill(0.0),
            5 => {
                let scale = random.pick(&[1e-44, 1e-38, 1e-20, 1.0, 1e10, 1e18, 1e30]);
                row = row.into_iter().map(|x| x * scale).collect();
            }
            6 => row.iter_mut().for_each(|x| *x = x.signum()),
            _ => {}
        }
        values.extend(row);
    }
    let values = match random.below(3) {
        0 => DenseValues::F32(values.into()),
        1 => DenseValues::F16(values.into_iter().map(round_f16).collect()),
        _ => DenseValues::Bf16(values.into_iter().map(bf16::from_f32).collect()),
    };
    DenseMatrix::new(rows, columns, values).expect("sizes agree")
}

/// About normally distributed.
fn bell(random: &mut Random) -> f32 {
    (0..6).map(|_| random.unit() - 0.5).sum()
}
