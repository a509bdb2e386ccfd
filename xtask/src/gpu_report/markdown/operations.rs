//! Each operation with its share of the device's limits.

use serde_json::Value;

use super::{Page, list, number, word};

/// Phases and batches that have a table.
const PHASES: [&str; 2] = ["decode", "prefill"];

/// A table for each run and phase: the operations, and the batches side by side.
pub(super) fn write(page: &mut Page<'_>) {
    page.part("Operations");
    page.line("Shares are those of the copies' bandwidth and of the peak of integer products, by the same API.");
    page.line("They are above 100 % where kernels read faster than the API copies.");
    let report = page.report;
    for run in list(&report["speed"]) {
        let limits = &report["limits"][word(&run["api"])];
        for phase in PHASES {
            let batches: Vec<&Value> = list(&run["reports"])
                .iter()
                .filter(|report| report["profile"][phase].is_object())
                .collect();
            let Some(first) = batches.first() else { continue };
            let (api, shape) = (word(&run["api"]), word(&run["shape"]));
            page.gap();
            page.line(&format!("### {api}, {shape}, {phase}"));
            page.gap();
            let mut columns = vec!["operation".to_owned()];
            for report in &batches {
                let batch = word(&report["batch"]);
                columns.extend(
                    ["µs a step", "GB/s", "share", "TOPS", "share"]
                        .map(|name| format!("{name} ({batch})")),
                );
            }
            let names: Vec<&str> = columns.iter().map(String::as_str).collect();
            let ops = list(&first["profile"][phase]["ops"]);
            let rows = ops.iter().map(|op| row(op, &batches, phase, limits));
            page.table(&names, true, rows.collect::<Vec<_>>());
        }
    }
}

fn row(op: &Value, batches: &[&Value], phase: &str, limits: &Value) -> Vec<String> {
    let name = match op["role"].as_str() {
        Some(role) => format!("{} {role}", word(&op["op"])),
        None => word(&op["op"]),
    };
    let mut cells = vec![name];
    for report in batches {
        let is_same = |line: &&Value| line["op"] == op["op"] && line["role"] == op["role"];
        let line = list(&report["profile"][phase]["ops"]).iter().find(is_same);
        cells.extend(line.map_or_else(|| vec!["-".to_owned(); 5], |line| numbers(line, limits)));
    }
    cells
}

/// Time, bandwidth and products of an operation, each of the latter with its share.
fn numbers(line: &Value, limits: &Value) -> Vec<String> {
    let bandwidth = line["weight_gb_per_second"].as_f64();
    let products = line["multiply_adds_per_second"].as_f64().map(|speed| 2.0 * speed / 1e12);
    let share = |found: Option<f64>, limit: &Value| match (found, limit.as_f64()) {
        (Some(found), Some(limit)) if limit > 0.0 => format!("{:.1} %", 100.0 * found / limit),
        _ => "-".to_owned(),
    };
    let time = line["ms_per_step"].as_f64().map(|time| 1e3 * time);
    vec![
        number(&time.into(), 1),
        number(&bandwidth.into(), 1),
        share(bandwidth, &limits["copy_gb_per_second"]),
        number(&products.into(), 3),
        share(products, &limits["peak_tera_operations_per_second"]),
    ]
}
