//! Prediction of a replay by `setun simulate`.

use std::{ops::RangeInclusive, path::Path};

use super::{
    cluster::{CONTEXT, MAX_CONCURRENT, contexts},
    replay::Pace,
};
use crate::support::setun;

/// Seeds of the simulated ring, which puts other conversations together than the proxy does. Where a
/// server gets more of them than its cache holds, the share is less.
const SEEDS: u32 = 8;

/// How far the real share may be from the predicted ones.
const POINTS: f64 = 0.05;

/// The predicted shares of cached tokens; none where the command predicts nothing.
pub(super) fn predicted(
    trace: &Path,
    replicas: u32,
    policy: &str,
    pace: Pace,
    prefix_positions: usize,
) -> Option<RangeInclusive<f64>> {
    let (replicas, prefix) = (replicas.to_string(), prefix_positions.to_string());
    let cache = (contexts(prefix_positions) * CONTEXT).to_string();
    let (concurrent, trace) = (MAX_CONCURRENT.to_string(), trace.to_string_lossy().into_owned());
    let mut args = vec!["simulate", "--trace", &trace, "--replicas", &replicas];
    args.extend(["--policy", policy, "--cache", &cache, "--prefix", &prefix]);
    args.extend(["--max-concurrent", &concurrent, "--other-replies", "--costs", "stories"]);
    let open = pace.open().to_string();
    args.extend(["--json", "--open", &open, "--seed"]);
    let mut shares = vec![];
    for seed in 0..SEEDS {
        let outcome = setun(&[&args[..], &[&seed.to_string()]].concat());
        if outcome.stderr.contains("unrecognized subcommand") {
            eprintln!("skipped: the command has no `simulate`");
            return None;
        }
        shares.push(outcome.json()["cached_share"].as_f64().expect("a share"));
    }
    shares.sort_by(f64::total_cmp);
    Some(shares[0]..=shares[shares.len() - 1])
}

/// The real share is one of those that were predicted, or near to them.
pub(super) fn assert_predicted(name: &str, real: f64, predicted: Option<RangeInclusive<f64>>) {
    if let Some(predicted) = predicted {
        let (least, most) = predicted.into_inner();
        eprintln!("{name}: cached {real:.3}, predicted {least:.3} to {most:.3}");
        let is_near = (least - POINTS..=most + POINTS).contains(&real);
        assert!(is_near, "{name}: {real}, not {least} to {most}");
    }
}
