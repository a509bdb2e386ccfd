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

use setun_cpu::{
    CpuOptions, Level,
    testing::{Groups, Products, Shape},
};
use setun_ops::Usage;

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
const ROWS: [usize; 8] = [1, 2, 4, 8, 16, 32, 128, 512];

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
    let shape = Shape { outputs, columns, usage, matrices: MATRICES, groups: Groups::default() };
    let mut step = Products::new(options, shape, rows).expect("the level is available");
    let threads = options.threads.unwrap_or(1) as f64;
    let products = step.multiply_adds;
    let mut shares = vec![];
    let mut times: Vec<Duration> = (0..if rows < 16 { 51 } else { 9 })
        .map(|_| {
            let before = options.level.and_then(peak::peak);
            let start = Instant::now();
            step.run().expect("good inputs");
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
