//! Limits and speed of each interface: `setun bench`, one shape after the other.

use serde_json::{Value, json};

use super::child::{Ended, Runner};
use super::machine::Api;
use super::programs::Programs;

/// Shapes, by worth; a slow device has the first alone.
const SHAPES: [&str; 4] = ["small", "2b4t", "7b", "bonsai-4b"];

/// Seconds of a shape, loading and all rounds included; those of a device that emulates one.
const SECONDS: u64 = 80;
const QUICK_SECONDS: u64 = 180;

/// How much is computed.
struct Size {
    prompt: &'static str,
    generate: &'static str,
    batches: &'static str,
    repeats: &'static str,
    seconds: u64,
}

const WHOLE: Size =
    Size { prompt: "512", generate: "128", batches: "1,8", repeats: "3", seconds: SECONDS };
const QUICK: Size =
    Size { prompt: "8", generate: "4", batches: "1,2", repeats: "1", seconds: QUICK_SECONDS };

fn size(is_quick: bool) -> &'static Size {
    if is_quick { &QUICK } else { &WHOLE }
}

/// The shapes of an interface.
pub(super) fn shapes(api: &Api) -> &'static [&'static str] {
    if api.is_quick { &SHAPES[..1] } else { &SHAPES }
}

/// The bandwidth of copies and the peak of integer products.
pub(super) fn limits(api: &Api, programs: &Programs, runner: &mut Runner) -> Value {
    let args = ["bench", "--backend", &api.name, "--prompt", "4", "--generate", "2"];
    let more = ["--repeat", "1", "--bandwidth", "--json"];
    let command = &mut programs.setun(&[&args[..], &more].concat());
    let ended = runner.run(&format!("limits {}", api.name), 60, command);
    let lines = ended.map(|ended| ended.lines()).unwrap_or_default();
    json!({
        "device": api.level,
        "copy_gb_per_second": lines.first().map(|line| &line["read_bandwidth_gb_per_second"]),
        "peak_tera_operations_per_second":
            lines.first().map(|line| &line["peak_tera_operations_per_second"]),
    })
}

/// Prefill and decode of a shape, with the times of operations.
pub(super) fn measure(api: &Api, shape: &str, programs: &Programs, runner: &mut Runner) -> Value {
    let size = size(api.is_quick);
    let ended = bench(&api.name, shape, size, size.batches, programs, runner);
    let (outcome, reports) = outcome(ended);
    let reports: Vec<Value> = reports.into_iter().map(with_host_time).collect();
    json!({
        "api": api.name,
        "shape": shape,
        "prompt": size.prompt,
        "generate": size.generate,
        "outcome": outcome,
        "same_in_every_batch": same(&reports),
        "reports": reports,
    })
}

/// The processor's tokens of the same prompts, batch 1, for each size and shape that was measured.
pub(super) fn by_cpu(apis: &[Api], programs: &Programs, runner: &mut Runner) -> Vec<Value> {
    let mut found = vec![];
    for is_quick in [false, true] {
        let Some(api) = apis.iter().find(|api| api.is_quick == is_quick) else { continue };
        for shape in shapes(api) {
            let size = Size { repeats: "1", ..*size(is_quick) };
            let (outcome, reports) = outcome(bench("cpu", shape, &size, "1", programs, runner));
            found.push(json!({
                "shape": shape,
                "prompt": size.prompt,
                "outcome": outcome,
                "first_tokens_hash": reports.first().map(|report| &report["first_tokens_hash"]),
            }));
        }
    }
    found
}

fn bench(
    backend: &str,
    shape: &str,
    size: &Size,
    batches: &str,
    programs: &Programs,
    runner: &mut Runner,
) -> Option<Ended> {
    let mut command = programs.setun(&["bench", "--json", "--profile", "--backend", backend]);
    command.args(["--shape", shape, "--prompt", size.prompt, "--generate", size.generate]);
    command.args(["--batch", batches, "--repeat", size.repeats]);
    runner.run(&format!("bench {backend} {shape}"), size.seconds, &mut command)
}

fn outcome(ended: Option<Ended>) -> (String, Vec<Value>) {
    match ended {
        Some(ended) if ended.is_ok() => ("ok".to_owned(), ended.lines()),
        Some(ended) => (ended.reason(), ended.lines()),
        None => ("not measured: no time was left".to_owned(), vec![]),
    }
}

/// Whether the first sequence has the same tokens whatever is beside it. None of one batch alone.
fn same(reports: &[Value]) -> Option<bool> {
    let (first, others) = reports.split_first()?;
    let hash = &first["first_tokens_hash"];
    (!others.is_empty()).then(|| others.iter().all(|other| other["first_tokens_hash"] == *hash))
}

/// Adds what a decoded token takes beside its operations. These are timed in a round of their own,
/// one after the other, so that it is below zero where the clock takes longer than the host.
fn with_host_time(mut report: Value) -> Value {
    let decode = &report["profile"]["decode"];
    let ops = decode["ops"].as_array().map(Vec::as_slice).unwrap_or_default();
    let operations: f64 = ops.iter().filter_map(|op| op["ms_per_token"].as_f64()).sum();
    let whole = report["decode_tokens_per_second"].as_f64().map(|speed| 1e3 / speed);
    let host = whole.filter(|_| !ops.is_empty()).map(|whole| 1e3 * (whole - operations));
    if let Some(object) = report.as_object_mut() {
        object.insert("host_us_per_token".to_owned(), json!(host));
    }
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_time_is_what_operations_leave() {
        let ops = json!([{ "ms_per_token": 1.0 }, { "ms_per_token": 2.5 }]);
        let report =
            json!({ "decode_tokens_per_second": 250.0, "profile": { "decode": { "ops": ops } } });
        let found = with_host_time(report)["host_us_per_token"].as_f64().unwrap();
        assert!((found - 500.0).abs() < 1e-9, "{found}");
        assert!(with_host_time(json!({ "profile": null }))["host_us_per_token"].is_null());
    }

    #[test]
    fn batches_are_compared_by_their_first_sequence() {
        let report = |hash: &str| json!({ "first_tokens_hash": hash });
        assert_eq!(same(&[report("a"), report("a")]), Some(true));
        assert_eq!(same(&[report("a"), report("a"), report("b")]), Some(false));
        assert_eq!(same(&[report("a")]), None);
        assert_eq!(same(&[]), None);
    }
}
