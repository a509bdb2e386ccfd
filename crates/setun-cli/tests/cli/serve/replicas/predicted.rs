//! Prediction of a replay by `setun simulate`.

use std::path::Path;

use super::{
    cluster::{CONTEXT, MAX_CONCURRENT, contexts},
    replay::Pace,
};
use crate::support::setun;

/// Seeds of the simulated ring, which puts other conversations together than the proxy does.
const SEEDS: u32 = 8;

/// How far a prediction may be from the real share.
const POINTS: f64 = 0.05;

/// The predicted share of cached tokens; none where the command predicts nothing.
pub(super) fn predicted(
    trace: &Path,
    replicas: u32,
    policy: &str,
    pace: Pace,
    prefix_positions: usize,
) -> Option<f64> {
    let (replicas, prefix) = (replicas.to_string(), prefix_positions.to_string());
    let cache = (contexts(prefix_positions) * CONTEXT).to_string();
    let (concurrent, trace) = (MAX_CONCURRENT.to_string(), trace.to_string_lossy().into_owned());
    let mut args = vec!["simulate", "--trace", &trace, "--replicas", &replicas];
    args.extend(["--policy", policy, "--cache", &cache, "--prefix", &prefix]);
    args.extend(["--max-concurrent", &concurrent, "--other-replies", "--costs", "stories"]);
    let open = pace.open().to_string();
    args.extend(["--json", "--open", &open, "--seed"]);
    let mut sum = 0.0;
    for seed in 0..SEEDS {
        let outcome = setun(&[&args[..], &[&seed.to_string()]].concat());
        if outcome.stderr.contains("unrecognized subcommand") {
            eprintln!("skipped: the command has no `simulate`");
            return None;
        }
        sum += outcome.json()["cached_share"].as_f64().expect("a share");
    }
    Some(sum / f64::from(SEEDS))
}

/// The real share is the one that was said.
pub(super) fn assert_predicted(name: &str, real: f64, predicted: Option<f64>) {
    if let Some(predicted) = predicted {
        eprintln!("{name}: cached {real:.3}, predicted {predicted:.3}");
        assert!((real - predicted).abs() <= POINTS, "{name}: {real}, not {predicted}");
    }
}
