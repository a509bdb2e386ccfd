//! Speed of `ternary_matmul` on shapes of the 2B-4T model: `cargo bench -p setun-cpu`.
//!
//! Prints billions of weights per second, the median and the best of several runs, for one row
//! of activations (decode) and 64 (prefill; each weight counts once for each row). On a machine
//! with other work only the best says much.

#![expect(clippy::print_stdout, reason = "a bench prints")]

use std::time::{Duration, Instant};

use setun_cpu::{CpuBackend, CpuOptions, Level};
use setun_ops::{
    Backend, BatchInputs, BlockId, CacheElement, CacheSpec, DenseMatrix, Op, Usage, WeightData,
    WeightId,
    dense::DenseValues,
    op::Linear,
    parity::Random,
    plan::{BufferKind, PlanBuilder, RowSet},
    ternary::Scales,
};

/// Matrices of a step: several, so that together they exceed the caches as a model does.
const MATRICES: usize = 24;

fn main() {
    for level in Level::available() {
        for threads in [1, 2] {
            for (outputs, columns) in [(2560, 2560), (6912, 2560), (2560, 6912)] {
                for rows in [1, 64] {
                    let options = CpuOptions { level: Some(level), threads: Some(threads) };
                    let [median, best] = speeds(options, outputs, columns, rows);
                    println!(
                        "{level}, {threads} threads, {outputs} × {columns}, {rows} rows: \
                         {median:.1} G weights/s (best {best:.1})"
                    );
                }
            }
        }
    }
}

/// Billions of weights per second, median and best.
#[expect(clippy::cast_precision_loss, reason = "a speed")]
fn speeds(options: CpuOptions, outputs: usize, columns: usize, rows: usize) -> [f64; 2] {
    let mut backend = CpuBackend::new(options).expect("the level is available");
    let mut random = Random::new(1);
    let table = DenseMatrix::new(1, columns, DenseValues::F32(random.floats(columns)));
    let mut weights = vec![WeightData::Dense(table.expect("sizes agree"))];
    let matrix = random.ternary_with(outputs, columns, Scales::Tensor(0.02));
    weights.extend((0..MATRICES).map(|_| WeightData::Ternary(matrix.clone())));

    let cache = CacheSpec {
        layers: 1,
        kv_heads: 1,
        head_dim: 2,
        block_positions: 64,
        element: CacheElement::F32,
    };
    let specs = weights.iter().map(WeightData::spec).collect();
    let mut builder = PlanBuilder::new(rows, 1, specs, cache);
    let floats = builder.buffer(BufferKind::F32, columns, RowSet::Batch);
    let x = builder.buffer(BufferKind::Quantized, columns, RowSet::Batch);
    let out = builder.buffer(BufferKind::F32, outputs, RowSet::Batch);
    builder.push(Op::Embed { table: WeightId(0), out: floats });
    builder.push(Op::Quantize { x: floats, norm: None, out: x });
    for weight in (1..).map(WeightId).take(MATRICES) {
        let linear = Linear { x, weight, bias: None };
        builder.push(Op::TernaryMatmul { linear, residual: None, out, out_column: 0 });
    }
    let plan = builder.finish().expect("the plan fits together");
    let weights: Vec<_> = weights
        .into_iter()
        .map(|weight| backend.upload(weight, Usage::General).expect("memory"))
        .collect();
    let mut step = backend.prepare(&plan, &weights).expect("memory");
    let mut cache = backend.create_cache(&cache, 1).expect("memory");
    let inputs = BatchInputs {
        tokens: vec![0; rows],
        positions: (0..).take(rows).collect(),
        slots: vec![0; rows],
        block_tables: vec![vec![BlockId(0)]],
        ..BatchInputs::default()
    };
    let mut times: Vec<Duration> = (0..if rows == 1 { 101 } else { 9 })
        .map(|_| {
            let start = Instant::now();
            backend.run(&mut step, &mut cache, &inputs).expect("good inputs");
            start.elapsed()
        })
        .collect();
    times.sort();
    let weights = (MATRICES * outputs * columns * rows) as f64;
    [times[times.len() / 2], times[0]].map(|time| weights / time.as_secs_f64() / 1e9)
}
