//! What cannot matter is not read, and a timed step says so.

use setun_cpu::{CpuBackend, CpuOptions};
use setun_ops::{
    Backend, BatchInputs, BlockId, CacheElement, CacheSpec, DenseMatrix, Op, Usage, WeightData,
    WeightId,
    dense::DenseValues,
    op::{Activation, Linear},
    parity::Random,
    plan::{BufferKind, PlanBuilder, RowSet},
    ternary::{Scales, row_bytes},
};

const COLUMNS: usize = 700;
const OUTPUTS: usize = 300;

/// Bytes that a gate and a product did not read, with one row whose elements are zero but for
/// the first `set`.
fn unread(set: usize) -> Option<[u64; 2]> {
    let mut backend = CpuBackend::new(CpuOptions { level: None, threads: Some(2) }).ok()?;
    let random = &mut Random::new(7);
    let row = (0..COLUMNS).map(|column| if column < set { 1.0 } else { 0.0 }).collect();
    let table = DenseMatrix::new(1, COLUMNS, DenseValues::F32(row)).unwrap();
    let mut weights = vec![WeightData::Dense(table)];
    let ternary = |random: &mut Random| random.ternary_with(OUTPUTS, COLUMNS, Scales::Tensor(0.5));
    weights.extend((0..3).map(|_| WeightData::Ternary(ternary(random))));

    let cache = CacheSpec {
        layers: 1,
        kv_heads: 1,
        head_dim: 2,
        block_positions: 32,
        element: CacheElement::F32,
    };
    let specs = weights.iter().map(WeightData::spec).collect();
    let mut plan = PlanBuilder::new(1, 1, specs, cache);
    let x = plan.buffer(BufferKind::F32, COLUMNS, RowSet::Batch);
    let codes = plan.buffer(BufferKind::Quantized, COLUMNS, RowSet::Batch);
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
    assert!(backend.time(&mut step));
    let mut cache = backend.create_cache(&cache, 1).unwrap();
    let inputs = BatchInputs {
        tokens: vec![0],
        positions: vec![0],
        slots: vec![0],
        block_tables: vec![vec![BlockId(0)]],
        ..BatchInputs::default()
    };
    backend.run(&mut step, &mut cache, &inputs).unwrap();
    let times = backend.times(&step).unwrap();
    assert_eq!(times.unread[..2], [0, 0]);
    Some([times.unread[2], times.unread[3]])
}

#[test]
fn zeros_leave_weights_unread() {
    let bytes = |rows: usize, columns: usize| (rows * row_bytes(columns)) as u64;
    let Some([up, down]) = unread(0) else { return };
    assert_eq!(up, bytes(OUTPUTS, COLUMNS), "all gates are closed");
    assert_eq!(down, bytes(COLUMNS, OUTPUTS), "all columns are zero");

    let [up, down] = unread(3).unwrap();
    assert!(up > 0 && up < bytes(OUTPUTS, COLUMNS), "some gates are closed: {up}");
    assert_eq!(up % bytes(1, COLUMNS), 0, "whole rows");
    assert_eq!(down, bytes(COLUMNS - 3, OUTPUTS), "three columns are not zero");
}
