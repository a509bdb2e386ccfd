//! Speed of `ternary_matmul` on shapes of the 2B-4T model: `cargo bench -p setun-cpu`.
//!
//! Prints billions of multiply-adds per second, the median and the best of several runs, for one
//! row of activations (decode), a few, and 128 and 512 (prefill), and, where it can be measured,
//! which share it is of what the same threads could do at most, measured in turn with the runs.
//! On a machine with other work only the best and the share say much. `cargo bench -p setun-cpu
//! -- avx512` takes one level.

#![expect(clippy::print_stdout, reason = "a bench prints")]

mod peak;

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
const MATRICES: usize = 12;

/// Shapes `(outputs, columns)` with what each is for: one layer's, but for the attention.
const SHAPES: [(usize, usize, Usage); 4] = [
    (2560, 2560, Usage::General),
    (6912, 2560, Usage::General),
    (2560, 6912, Usage::General),
    (2560, 6912, Usage::SparseInput),
];

/// Rows of activations: decode, a few sequences, prefill.
const ROWS: [usize; 6] = [1, 4, 8, 16, 128, 512];

fn main() {
    // `cargo bench` adds an option of its own.
    let wanted: Vec<String> = std::env::args().skip(1).filter(|name| name != "--bench").collect();
    let levels = Level::available().into_iter();
    let levels =
        levels.filter(|level| wanted.is_empty() || wanted.iter().any(|name| name == level.name()));
    for level in levels {
        for threads in [1, 2] {
            for shape in SHAPES {
                for rows in ROWS {
                    let options = CpuOptions { level: Some(level), threads: Some(threads) };
                    report(options, shape, rows);
                }
            }
        }
    }
}

fn report(options: CpuOptions, (outputs, columns, usage): (usize, usize, Usage), rows: usize) {
    let Speeds { median, best, share } = speeds(options, (outputs, columns, usage), rows);
    let (level, threads) = (options.level.map_or("", Level::name), options.threads.unwrap_or(1));
    let kept = if usage == Usage::SparseInput { " by columns" } else { "" };
    let share =
        share.map_or(String::new(), |share| format!(", {:.0} % of the peak", share * 100.0));
    println!(
        "{level}, {threads} threads, {outputs} × {columns}{kept}, {rows} rows: {median:.1} G/s \
         (best {best:.1}){share}"
    );
}

/// Billions of multiply-adds per second.
struct Speeds {
    median: f64,
    best: f64,
    /// Of the peak that was measured beside each run, the median.
    share: Option<f64>,
}

#[expect(clippy::cast_precision_loss, reason = "a speed")]
fn speeds(
    options: CpuOptions,
    (outputs, columns, usage): (usize, usize, Usage),
    rows: usize,
) -> Speeds {
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
        block_positions: 512,
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
    let weights: Vec<_> =
        weights.into_iter().map(|weight| backend.upload(weight, usage).expect("memory")).collect();
    let mut step = backend.prepare(&plan, &weights).expect("memory");
    let mut cache = backend.create_cache(&cache, 1).expect("memory");
    let inputs = BatchInputs {
        tokens: vec![0; rows],
        positions: (0..).take(rows).collect(),
        slots: vec![0; rows],
        block_tables: vec![vec![BlockId(0)]],
        ..BatchInputs::default()
    };
    let threads = options.threads.unwrap_or(1) as f64;
    let products = (MATRICES * outputs * columns * rows) as f64;
    let mut shares = vec![];
    let mut times: Vec<Duration> = (0..if rows < 16 { 51 } else { 9 })
        .map(|_| {
            let before = options.level.and_then(peak::peak);
            let start = Instant::now();
            backend.run(&mut step, &mut cache, &inputs).expect("good inputs");
            let time = start.elapsed();
            let after = options.level.and_then(peak::peak);
            if let (Some(before), Some(after)) = (before, after) {
                let peak = before.max(after) * 1e9 * threads;
                shares.push(products / time.as_secs_f64() / peak);
            }
            time
        })
        .collect();
    times.sort();
    shares.sort_by(f64::total_cmp);
    let speed = |time: Duration| products / time.as_secs_f64() / 1e9;
    Speeds {
        median: speed(times[times.len() / 2]),
        best: speed(times[0]),
        share: shares.get(shares.len() / 2).copied(),
    }
}
