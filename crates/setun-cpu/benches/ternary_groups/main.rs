//! Cost of scales by groups of columns: products of Bonsai-4B's shapes with one scale, and with one
//! for each group of weights and of activations, in turn. `cargo bench -p setun-cpu --bench
//! ternary_groups`, with `-- avx2 128` for one level and number of rows.
//!
//! Prints the median of each and the ratios of the medians to that without groups.

#![expect(clippy::print_stdout, reason = "a bench prints")]

use std::time::{Duration, Instant};

use setun_cpu::{
    CpuOptions, Level,
    testing::{Groups, Products, Shape},
};
use setun_ops::Usage;

/// Matrices of a step: several, so that together they exceed the caches as a model does.
const MATRICES: usize = 12;

/// Shapes `(outputs, columns)` of the feed-forward part.
const SHAPES: [(usize, usize); 2] = [(9728, 2560), (2560, 9728)];

/// Rows of activations: decode, a few sequences, prefill.
const ROWS: [usize; 5] = [1, 2, 4, 16, 128];

/// None, those of the models, those of older files, and finer activations.
const GROUPS: [Groups; 4] = [
    Groups { weights: None, activations: None },
    Groups { weights: Some(128), activations: Some(128) },
    Groups { weights: Some(64), activations: Some(128) },
    Groups { weights: Some(128), activations: Some(32) },
];

fn main() {
    // `cargo bench` adds an option of its own.
    let wanted: Vec<String> = std::env::args().skip(1).filter(|name| name != "--bench").collect();
    let (numbers, names): (Vec<_>, Vec<_>) =
        wanted.iter().partition(|name| name.parse::<usize>().is_ok());
    let is_wanted = |list: &[&String], it: &str| list.is_empty() || list.iter().any(|&x| x == it);
    for level in Level::available().into_iter().filter(|level| is_wanted(&names, level.name())) {
        for threads in [1, 2] {
            for shape in SHAPES {
                for rows in ROWS.into_iter().filter(|rows| is_wanted(&numbers, &rows.to_string())) {
                    report(CpuOptions { level: Some(level), threads: Some(threads) }, shape, rows);
                }
            }
        }
    }
}

fn report(options: CpuOptions, (outputs, columns): (usize, usize), rows: usize) {
    let mut steps = GROUPS.map(|groups| {
        let shape = Shape { outputs, columns, usage: Usage::General, matrices: MATRICES, groups };
        Products::new(options, shape, rows).expect("the level is available")
    });
    let mut times = GROUPS.map(|_| vec![]);
    for _ in 0..if rows < 16 { 31 } else { 7 } {
        for (step, times) in steps.iter_mut().zip(&mut times) {
            let start = Instant::now();
            step.run().expect("good inputs");
            times.push(start.elapsed());
        }
    }
    let medians = times.map(|mut times: Vec<Duration>| {
        times.sort();
        times[times.len() / 2].as_secs_f64()
    });
    let (level, threads) = (options.level.map_or("", Level::name), options.threads.unwrap_or(1));
    let speed = steps[0].multiply_adds / medians[0] / 1e9;
    let ratios = medians.map(|median| format!("{:.2}", median / medians[0]));
    println!(
        "{level}, {threads} threads, {outputs} × {columns}, {rows} rows: {speed:.1} G/s, groups {}",
        ratios[1..].join(" ")
    );
}
