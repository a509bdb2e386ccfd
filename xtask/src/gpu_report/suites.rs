//! Test programs of a device, counted.

use std::process::Command;

use serde_json::{Value, json};

use super::child::{Ended, Runner, last_lines};
use super::programs::Programs;
use crate::shell::root;

/// Seconds of a program: what takes longer hangs.
const SECONDS: u64 = 90;

/// Runs programs whose device is expected to be there.
pub(super) fn run(
    names: &[&str],
    expects_cuda: bool,
    programs: &Programs,
    runner: &mut Runner,
) -> Vec<Value> {
    names.iter().filter_map(|name| run_one(name, expects_cuda, programs, runner)).collect()
}

fn run_one(
    name: &str,
    expects_cuda: bool,
    programs: &Programs,
    runner: &mut Runner,
) -> Option<Value> {
    let (path, tests) = (programs.path(name), root().join("tests"));
    if !path.is_file() {
        runner.miss(name, "the program is not in the folder");
        return None;
    }
    if name.starts_with("setun-tests") && !tests.join("fixtures").is_dir() {
        runner.miss(name, "no checkout with tests/fixtures is here");
        return None;
    }
    let mut command = Command::new(path);
    command.args(["--nocapture", "--test-threads", "1"]);
    command.env("CARGO_MANIFEST_DIR", &tests).env("NODEVICE_SELECT", "1");
    if expects_cuda {
        command.env("SETUN_EXPECT_CUDA", "1");
    }
    runner.run(name, SECONDS, &mut command).map(|ended| result(name, &ended))
}

/// What a program says of its tests.
fn result(name: &str, ended: &Ended) -> Value {
    let of_line = |line: &str, unit: &str| -> Option<u64> {
        let before = &line[..line.find(unit)?];
        before.split_whitespace().next_back()?.parse().ok()
    };
    let line = ended.stdout.lines().find(|line| line.starts_with("test result: "));
    // One that has not ended says it test by test.
    let ended_with = |end: &str| {
        let lines = ended.stdout.lines().filter(|line| line.ends_with(end));
        lines.count() as u64
    };
    let count = |unit, end| match line {
        Some(line) => of_line(line, unit),
        None => Some(ended_with(end)),
    };
    let begins = |line: &&str| line.starts_with("skipped:");
    let mut skipped: Vec<&str> = ended.stderr.lines().filter(begins).collect();
    skipped.dedup();
    let failures = (!ended.is_ok()).then(|| last_lines(&ended.stderr, 40));
    json!({
        "program": name,
        "outcome": ended.outcome,
        "seconds": ended.seconds,
        "passed": count(" passed", "... ok"),
        "failed": count(" failed", "... FAILED"),
        "ignored": count(" ignored", "... ignored"),
        "skipped": skipped,
        "failures": failures,
        "said": last_lines(&ended.stderr, 8),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_counted_and_skips_are_seen() {
        let ended = |outcome: &str, stdout: &str, stderr: &str| Ended {
            outcome: outcome.to_owned(),
            stdout: stdout.to_owned(),
            stderr: stderr.to_owned(),
            seconds: 1.0,
        };
        let good = "running 5 tests\ntest result: ok. 4 passed; 0 failed; 1 ignored; 0 measured\n";
        let found = result("x", &ended("ok", good, "skipped: no device\nskipped: no device\n"));
        assert_eq!([&found["passed"], &found["failed"], &found["ignored"]], [4, 0, 1]);
        assert_eq!(
            (&found["skipped"], &found["failures"]),
            (&json!(["skipped: no device"]), &Value::Null)
        );
        let found = result("x", &ended("signal: 9", "test a ... ok\ntest b ... ", "panicked\n"));
        assert_eq!((&found["passed"], &found["failures"]), (&json!(1), &json!("panicked")));
    }
}
