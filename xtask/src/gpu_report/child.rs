//! Measurements as processes, each with its own time and its output in files.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::announce;

/// Less is not worth a process.
const MIN_LIMIT: Duration = Duration::from_secs(2);

/// Runs processes until the time for all of them is over.
pub(super) struct Runner {
    begun: Instant,
    all: Duration,
    logs: PathBuf,
    not_measured: Vec<Value>,
}

/// What a process left.
pub(super) struct Ended {
    /// `ok`, or what went wrong.
    pub(super) outcome: String,
    pub(super) stdout: String,
    pub(super) stderr: String,
    pub(super) seconds: f64,
}

impl Ended {
    pub(super) fn is_ok(&self) -> bool {
        self.outcome == "ok"
    }

    /// The lines of JSON that it printed.
    pub(super) fn lines(&self) -> Vec<Value> {
        self.stdout.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// What went wrong, with the end of what it said of that.
    pub(super) fn reason(&self) -> String {
        let said = last_lines(&self.stderr, 4).replace('\n', "; ");
        if said.is_empty() { self.outcome.clone() } else { format!("{}: {said}", self.outcome) }
    }
}

impl Runner {
    pub(super) fn new(logs: &Path, minutes: u64) -> Result<Self> {
        fs::create_dir_all(logs).with_context(|| logs.display().to_string())?;
        let (begun, all) = (Instant::now(), Duration::from_secs(60 * minutes));
        Ok(Self { begun, all, logs: logs.to_owned(), not_measured: vec![] })
    }

    /// The folder of logs, for what a measurement writes.
    pub(super) fn folder(&self) -> &Path {
        &self.logs
    }

    pub(super) fn left(&self) -> Duration {
        self.all.saturating_sub(self.begun.elapsed())
    }

    pub(super) fn seconds(&self) -> f64 {
        self.begun.elapsed().as_secs_f64()
    }

    pub(super) fn not_measured(&self) -> &[Value] {
        &self.not_measured
    }

    /// Lists what is not there.
    pub(super) fn miss(&mut self, what: &str, why: &str) {
        self.not_measured.push(json!({ "what": what, "why": why }));
    }

    /// Runs a process for at most this many seconds. None, and a line of what was not measured,
    /// where no time is left.
    pub(super) fn run(&mut self, what: &str, seconds: u64, command: &mut Command) -> Option<Ended> {
        let limit = self.left().min(Duration::from_secs(seconds));
        if limit < MIN_LIMIT {
            self.miss(what, "no time was left");
            return None;
        }
        announce(what, self);
        let begun = Instant::now();
        let file = |end| self.logs.join(format!("{}.{end}", what.replace([' ', '/', ','], "-")));
        let paths = [file("out"), file("err")];
        let outcome = match run(command, &paths, limit) {
            Ok(outcome) => outcome,
            Err(error) => format!("{error:#}"),
        };
        let read = |path: &Path| fs::read(path).map_or_else(|_| String::new(), |text| lossy(&text));
        let [stdout, stderr] = [read(&paths[0]), read(&paths[1])];
        let ended = Ended { outcome, stdout, stderr, seconds: begun.elapsed().as_secs_f64() };
        if !ended.is_ok() {
            self.miss(what, &ended.reason());
        }
        Some(ended)
    }
}

/// Runs a process to its end, or to the end of its time.
fn run(command: &mut Command, files: &[PathBuf; 2], limit: Duration) -> Result<String> {
    let [out, err] = [File::create(&files[0])?, File::create(&files[1])?];
    command.stdin(Stdio::null()).stdout(out).stderr(err);
    let name = command.get_program().display().to_string();
    let mut child = command.spawn().with_context(|| format!("cannot start {name}"))?;
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(if status.success() { "ok".into() } else { status.to_string() });
        }
        if begun.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            return Ok(format!("ended after its time, {} s", limit.as_secs()));
        }
        sleep(Duration::from_millis(20));
    }
}

/// The last lines that say anything.
pub(super) fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

fn lossy(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[cfg(unix)]
    #[test]
    fn a_process_costs_its_own_time_and_no_more() {
        let folder = tempfile::tempdir().unwrap();
        let mut runner = Runner::new(&folder.path().join("logs"), 1).unwrap();
        let good = runner.run("good", 60, &mut shell("echo '{\"a\":1}'; echo no")).unwrap();
        assert!(good.is_ok());
        assert_eq!(good.lines(), [json!({ "a": 1 })]);
        let bad = runner.run("bad", 60, &mut shell("echo why >&2; exit 3")).unwrap();
        assert_eq!(bad.reason(), "exit status: 3: why");
        let slow = runner.run("slow", 2, &mut shell("exec sleep 600")).unwrap();
        assert_eq!(slow.outcome, "ended after its time, 2 s");
        let absent = runner.run("absent", 60, &mut Command::new("/nowhere/at/all")).unwrap();
        assert!(absent.outcome.contains("cannot start"), "{}", absent.outcome);
        runner.all = Duration::ZERO;
        assert!(runner.run("late", 60, &mut shell("true")).is_none());
        let missed: Vec<_> = runner.not_measured().iter().map(|line| &line["what"]).collect();
        assert_eq!(missed, ["bad", "slow", "absent", "late"]);
    }

    #[test]
    fn the_end_of_a_text_has_no_empty_lines() {
        assert_eq!(last_lines("a\nb\n\nc\n\n", 2), "b\nc");
        assert_eq!(last_lines("", 2), "");
    }
}
