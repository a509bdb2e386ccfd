//! Exact sparsity: weights that cannot matter are not read, and a timed step counts them.

use setun_cpu::{CpuBackend, CpuOptions};
use setun_ops::{
    Backend, BatchInputs, BlockId, CacheSpec, DenseMatrix, Op, Usage, WeightData, WeightId,
    dense::DenseValues,
    op::{Activation, Linear},
    plan::{BufferKind, PlanBuilder, RowSet},
    random::Random,
    ternary::{Scales, TernaryMatrix, padded_columns, row_bytes},
    ternary_dot::ternary_dot,
};

const COLUMNS: usize = 700;
const OUTPUTS: usize = 300;

/// What a step said of itself.
struct Counted {
    unread: [u64; 2], // bytes that the gate and the product did not read
    codes: u64,       // that are not zero
    gates: u64,       // that are open
    expected_gates: u64,
}

/// A gate and a product over equal rows, whose elements are zero but for the first `set`.
fn counted(set: usize, rows: u32) -> Option<Counted> {
    let mut backend = CpuBackend::new(CpuOptions { level: None, threads: Some(2) }).ok()?;
    let random = &mut Random::new(7);
    let row = (0..COLUMNS).map(|column| if column < set { 1.0 } else { 0.0 }).collect();
    let table = DenseMatrix::new(1, COLUMNS, DenseValues::F32(row)).unwrap();
    let mut weights = vec![WeightData::Dense(table)];
    let ternary = |random: &mut Random| random.ternary_with(OUTPUTS, COLUMNS, Scales::Tensor(0.5));
    let gate = ternary(random);
    let expected_gates = u64::from(rows) * open_gates(&gate, set);
    weights.push(WeightData::Ternary(gate));
    weights.extend((0..2).map(|_| WeightData::Ternary(ternary(random))));

    let cache = CacheSpec::smallest(32);
    let specs = weights.iter().map(WeightData::spec).collect();
    let mut plan = PlanBuilder::new(rows as usize, 1, specs, cache);
    let x = plan.buffer(BufferKind::F32, COLUMNS, RowSet::Batch);
    let codes = plan.buffer(BufferKind::Quantized { group: None }, COLUMNS, RowSet::Batch);
    let out = plan.buffer(BufferKind::F32, OUTPUTS, RowSet::Batch);
    let linear = |id| Linear { x: codes, weight: WeightId(id), bias: None };
    plan.push(Op::Embed { table: WeightId(0), out: x });
    plan.push(Op::Quantize { x, norm: None, out: codes });
    let activation = Activation::ReluSquared;
    plan.push(Op::Gate { gate: linear(1), up: linear(2), activation, out });
    plan.push(Op::TernaryMatmul { linear: linear(3), residual: None, out, out_column: 0 });
    let plan = plan.finish().unwrap();

    let usages = [Usage::General, Usage::General, Usage::General, Usage::SparseInput];
    let weights: Vec<_> = (weights.into_iter().zip(usages))
        .map(|(weight, usage)| backend.upload(weight, usage).unwrap())
        .collect();
    let mut step = backend.prepare(&plan, &weights).unwrap();
    assert!(backend.time(&mut step, true));
    let mut cache = backend.create_cache(&cache, 2).unwrap();
    let inputs = BatchInputs {
        tokens: vec![0; rows as usize],
        positions: (0..rows).collect(),
        slots: vec![0; rows as usize],
        block_tables: vec![vec![BlockId(0), BlockId(1)]],
        ..BatchInputs::default()
    };
    backend.run(&mut step, &mut cache, &inputs).unwrap();
    let times = backend.times(&step).unwrap();
    assert_eq!(times.unread[..2], [0, 0]);
    assert_eq!((times.nonzero[0], times.nonzero[3]), (0, 0), "counted elsewhere");
    let [_, codes, gates, _] = *times.nonzero else { panic!("four ops") };
    Some(Counted { unread: [times.unread[2], times.unread[3]], codes, gates, expected_gates })
}

/// Rows of a gate whose sum over the first `set` columns is positive, by the definition.
fn open_gates(gate: &TernaryMatrix, set: usize) -> u64 {
    let mut codes = vec![0; padded_columns(COLUMNS)];
    codes[..set].fill(127);
    (0..OUTPUTS).filter(|&row| ternary_dot(gate.row(row), &codes) > 0).count() as u64
}

#[test]
fn zeros_leave_weights_unread() {
    let bytes = |rows: usize, columns: usize| (rows * row_bytes(columns)) as u64;
    let Some(Counted { unread: [up, down], .. }) = counted(0, 1) else { return };
    assert_eq!(up, bytes(OUTPUTS, COLUMNS), "all gates are closed");
    assert_eq!(down, bytes(COLUMNS, OUTPUTS), "all columns are zero");

    let [up, down] = counted(3, 1).unwrap().unread;
    assert!(up > 0 && up < bytes(OUTPUTS, COLUMNS), "some gates are closed: {up}");
    assert_eq!(up % bytes(1, COLUMNS), 0, "whole rows");
    assert_eq!(down, bytes(COLUMNS - 3, OUTPUTS), "three columns are not zero");
}

/// With few rows and with many, which are computed another way.
#[test]
fn open_gates_and_codes_are_counted() {
    for (set, rows) in [(0, 1), (3, 1), (COLUMNS, 1), (3, 2), (3, 5), (COLUMNS, 40)] {
        let Some(found) = counted(set, rows) else { return };
        assert_eq!(found.codes, set as u64 * u64::from(rows), "{set} set, {rows} rows");
        assert_eq!(found.gates, found.expected_gates, "{set} set, {rows} rows");
        assert_eq!(found.gates > 0, set > 0);
    }
}
