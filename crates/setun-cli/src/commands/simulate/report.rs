//! Reports of simulations as a table or as lines of JSON.

use setun_simulate::{Report, StepCosts};

use crate::{
    error::CliError,
    output::{Output, titled},
};

const COLUMNS: [&str; 9] = [
    "replicas",
    "policy",
    "cached",
    "first token",
    "p95",
    "p99",
    "open max/mean",
    "computed max/mean",
    "preempted",
];

const LOSS_COLUMNS: [&str; 8] = [
    "replicas",
    "policy",
    "restarted",
    "moved keys",
    "others moved",
    "computed more",
    "cached without",
    "p99 without",
];

pub(super) fn print(reports: &[Report], costs: &StepCosts, json: bool) -> Result<(), CliError> {
    let mut output = Output::new();
    if json {
        return reports.iter().try_for_each(|report| output.json(report));
    }
    output.line(&titled(COLUMNS, reports.iter().map(row)))?;
    if reports.iter().any(|report| report.loss.is_some()) {
        output.line("")?;
        output.line(&titled(LOSS_COLUMNS, reports.iter().filter_map(loss_row)))?;
    }
    output.line(&format!("\nsteps: {}", costs.name))
}

fn row(report: &Report) -> Vec<String> {
    let times = report.first_token_ms;
    vec![
        format!("{:8}", report.replicas),
        report.policy.to_owned(),
        percent(report.cached_share),
        time(times.median),
        time(times.p95),
        time(times.p99),
        format!("{:13.2}", report.imbalance.open_requests),
        format!("{:17.2}", report.imbalance.computed_tokens),
        format!("{:9}", report.preemptions),
    ]
}

fn loss_row(report: &Report) -> Option<Vec<String>> {
    let loss = report.loss?;
    Some(vec![
        format!("{:8}", report.replicas),
        report.policy.to_owned(),
        format!("{:9}", loss.restarted_requests),
        format!("{:10}", loss.moved_keys),
        format!("{:12}", loss.other_moved_keys),
        format!("{:13}", loss.more_computed_tokens),
        format!("{:>14}", percent(loss.cached_share_without)),
        format!("{:>11}", time(loss.p99_without)),
    ])
}

fn percent(share: f64) -> String {
    format!("{:4.1} %", 100.0 * share)
}

fn time(milliseconds: f64) -> String {
    let text = if milliseconds < 1000.0 {
        format!("{milliseconds:.0} ms")
    } else {
        format!("{:.1} s", milliseconds / 1000.0)
    };
    format!("{text:>9}")
}
