//! Lanes of stages that run beside each other: a linker, a browser or a download leaves a processor free.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result};

use super::stage::{Finished, Outcome, Stage};
use super::stages::LANES;
use super::{Options, seed};
use crate::shell::{root, say, target};

/// Lines of an excerpt of a log.
const LINES: usize = 80;

/// A stage to run and why, where it has inputs.
type Due = (&'static Stage, Option<String>);

/// Stages that have not ended, for those of other lanes that wait for them.
struct Board {
    pending: Mutex<BTreeSet<&'static str>>,
    changed: Condvar,
}

impl Board {
    fn wait_for(&self, names: &[&str]) {
        let pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        let is_missing =
            |pending: &mut BTreeSet<&str>| names.iter().any(|name| pending.contains(name));
        drop(self.changed.wait_while(pending, is_missing));
    }

    fn has_ended(&self, name: &str) {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
        self.changed.notify_all();
    }
}

/// Runs stages, each in a process of its own, and returns how they ended: in lanes, or one after the other where
/// their output is shown.
pub(super) fn run(stages: Vec<Due>, options: &Options, seed: u32) -> Result<Vec<Finished>> {
    fs::create_dir_all(folder())?;
    let pending = stages.iter().map(|(stage, _)| stage.name).collect();
    let board = Board { pending: Mutex::new(pending), changed: Condvar::new() };
    let run_one = |(stage, reason): Due| {
        board.wait_for(stage.needs);
        let ran = run_stage(stage.name, options, seed).unwrap_or_else(|error| {
            let outcome = Outcome::Failed(format!("{error:#}"));
            Finished { outcome, ..Finished::default() }
        });
        board.has_ended(stage.name);
        Finished { name: stage.name, reason, ..ran }
    };
    let mut lanes: [Vec<Due>; LANES] = Default::default();
    for due in stages {
        lanes[if options.is_shown() { 0 } else { due.0.lane }].push(due);
    }
    Ok(thread::scope(|scope| {
        let run_lane = |lane: Vec<Due>| lane.into_iter().map(run_one).collect::<Vec<_>>();
        let lanes = lanes.map(|lane| scope.spawn(move || run_lane(lane)));
        lanes.into_iter().flat_map(|lane| lane.join().unwrap_or_default()).collect()
    }))
}

/// Runs a stage in a process of its own.
fn run_stage(name: &str, options: &Options, seed: u32) -> Result<Finished> {
    let (log, results) = (file(name, "log"), file(name, "json"));
    if results.exists() {
        fs::remove_file(&results)?;
    }
    let mut stage = Command::new(std::env::current_exe()?);
    stage.current_dir(root()).args(["test", "--only", name, "--results"]).arg(&results);
    stage.args(options.full.then_some("--full")).args(options.long.then_some("--long"));
    stage.args(options.minutes.map(|minutes| format!("--minutes={minutes}")));
    stage.envs(seed::variables(seed, options.is_full())).stdin(Stdio::null());
    let begun = Instant::now();
    if !options.is_shown() {
        say(&format!("=== {name} begins: {}", log.display()));
        let output = File::create(&log)?;
        stage.stdout(output.try_clone()?).stderr(output);
    }
    stage.status().context("cannot start a process")?;
    if !options.is_shown() {
        // One log after the other.
        io::copy(&mut File::open(&log)?, &mut io::stderr().lock())?;
    }
    let finished = fs::read(&results).context("its process ended without a result")?;
    Ok(Finished { time: begun.elapsed(), ..serde_json::from_slice(&finished)? })
}

/// The failures in the log of a stage, to be shown last: of a long output often only the end is kept.
pub(super) fn excerpt(name: &str) -> String {
    match fs::read(file(name, "log")) {
        Ok(log) => failures(&String::from_utf8_lossy(&log)),
        Err(error) => format!("its log cannot be read: {error}"),
    }
}

/// The messages of cargo's failed tests, or the last lines where there are none.
fn failures(log: &str) -> String {
    let mut is_message = false;
    let messages = log.lines().filter(|line| {
        is_message = (is_message || *line == "failures:") && !line.starts_with("test result: ");
        is_message && !line.is_empty()
    });
    let messages: Vec<&str> = messages.take(LINES).collect();
    let lines: Vec<&str> = log.lines().collect();
    let last = &lines[lines.len().saturating_sub(LINES)..];
    if messages.is_empty() { last.join("\n") } else { messages.join("\n") }
}

/// A file of a stage.
fn file(name: &str, extension: &str) -> PathBuf {
    folder().join(name.replace([' ', ':'], "-")).with_extension(extension)
}

/// Where logs and results are.
fn folder() -> PathBuf {
    target().join("xtask/stages")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_waits_for_those_of_other_lanes() {
        let pending = Mutex::new(["a", "b", "c"].into());
        let board = Board { pending, changed: Condvar::new() };
        let order = Mutex::new(vec![]);
        thread::scope(|scope| {
            scope.spawn(|| {
                board.wait_for(&["a", "b", "not one of this check"]);
                order.lock().unwrap().push("c");
            });
            for name in ["a", "b"] {
                order.lock().unwrap().push(name);
                board.has_ended(name);
            }
        });
        assert_eq!(order.into_inner().unwrap(), ["a", "b", "c"]);
    }

    #[test]
    fn failed_tests_of_cargo_are_taken_out_of_a_long_log() {
        let log = "test a ... FAILED\ntest b ... ok\n\nfailures:\n\n---- a stdout ----\n\
            thread 'a' panicked at x.rs:1:2:\nno\n\nfailures:\n    a\n\n\
            test result: FAILED. 1 passed; 1 failed\n";
        let expected =
            "failures:\n---- a stdout ----\nthread 'a' panicked at x.rs:1:2:\nno\nfailures:\n    a";
        let after = "test c ... ok\n".repeat(2 * LINES);
        assert_eq!(failures(&format!("{log}{after}")), expected);
        // Other logs are shown from their end.
        let log: Vec<String> = (0..2 * LINES).map(|line| line.to_string()).collect();
        assert_eq!(failures(&log.join("\n")), log[LINES..].join("\n"));
        assert_eq!(failures(""), "");
    }
}
