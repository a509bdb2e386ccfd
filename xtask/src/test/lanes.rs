//! Lanes of stages that run beside each other: a linker, a browser or a download leaves a processor free.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::failures;
use super::stage::{Finished, Outcome};
use super::totals::Totals;
use crate::shell::{root, say, target};

/// Stages beside those of the first lane, which has all others. At a time the lanes share no program but browsers and
/// the command in `target/debug`, which the first lane alone builds: stages of others have folders of their own, or
/// only check what others build. Cargo lets them wait where it must.
const LANES: [&[&str]; 3] = [
    &["binding tool", "npm check", "npm test", "package", "npm test:packaging", "npm test:browser"],
    &[
        "dependencies",
        "crate packages",
        "fuzz",
        "neon",
        "systems",
        "features",
        "documentation",
        "kernels",
        "cuda",
    ],
    &["page", "npm test:equality", "web check", "web test"],
];

/// Stages that wait for stages of other lanes: both take the tarball, and compare it with the command.
const NEEDS: [(&str, [&str; 2]); 2] =
    [("page", ["package", "crates"]), ("npm test:equality", ["package", "crates"])];

/// How stages of other lanes are waited for.
#[derive(Default)]
struct Board {
    ended: Mutex<BTreeSet<String>>,
    changed: Condvar,
}

impl Board {
    fn wait_for(&self, names: &[&str]) {
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        let is_missing =
            |ended: &mut BTreeSet<String>| names.iter().any(|name| !ended.contains(*name));
        drop(self.changed.wait_while(ended, is_missing));
    }

    fn has_ended(&self, name: &str) {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned());
        self.changed.notify_all();
    }
}

/// Runs the stages of these names, each in a process of its own with `options`, and returns how they ended.
/// What a stage prints is shown when it has ended.
pub(super) fn run(names: &[String], options: &[String]) -> Result<Vec<Finished>> {
    fs::create_dir_all(folder())?;
    let board = Board::default();
    let finished = thread::scope(|scope| {
        let lanes: Vec<_> = lanes(names)
            .into_iter()
            .map(|lane| scope.spawn(|| run_lane(lane, names, options, &board)))
            .collect();
        lanes.into_iter().flat_map(|lane| lane.join().unwrap_or_default()).collect()
    });
    Ok(finished)
}

/// The names in their lanes.
fn lanes(names: &[String]) -> Vec<Vec<&str>> {
    let of_lane = |lane: &[&str]| -> Vec<&str> {
        names.iter().map(String::as_str).filter(|name| lane.contains(name)).collect()
    };
    let is_beside = |name: &&str| LANES.concat().contains(name);
    let first = names.iter().map(String::as_str).filter(|name| !is_beside(name)).collect();
    std::iter::once(first).chain(LANES.map(of_lane)).collect()
}

fn run_lane(lane: Vec<&str>, all: &[String], options: &[String], board: &Board) -> Vec<Finished> {
    let mut finished = vec![];
    for name in lane {
        let needs = NEEDS.iter().filter(|(stage, _)| *stage == name).flat_map(|(_, needs)| *needs);
        let needs: Vec<&str> = needs.filter(|need| all.iter().any(|name| name == need)).collect();
        board.wait_for(&needs);
        finished.push(run_stage(name, options).unwrap_or_else(|error| failed(name, &error)));
        board.has_ended(name);
    }
    finished
}

/// Runs a stage in a process of its own.
fn run_stage(name: &str, options: &[String]) -> Result<Finished> {
    let (log, results) = (file(name, "log"), file(name, "json"));
    if results.exists() {
        fs::remove_file(&results)?;
    }
    say(&format!("=== {name} begins: {}", log.display()));
    let begun = Instant::now();
    let output = File::create(&log)?;
    Command::new(std::env::current_exe()?)
        .current_dir(root())
        .args(["test", "--only", name, "--results"])
        .arg(&results)
        .args(options)
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output)
        .status()
        .context("cannot start a process")?;
    {
        // One log after the other.
        let mut shown = io::stderr().lock();
        io::copy(&mut File::open(&log)?, &mut shown)?;
    }
    let finished = read_results(&results).context("its process ended without a result")?;
    let finished = finished.into_iter().next().context("no such stage")?;
    Ok(Finished { time: begun.elapsed(), ..finished })
}

fn failed(name: &str, error: &anyhow::Error) -> Finished {
    let outcome = Outcome::Failed(format!("{error:#}"));
    let (totals, time) = (Totals::default(), Duration::ZERO);
    Finished { name: name.to_owned(), outcome, totals, time, cpu_time: None }
}

/// What the log of a failed stage says of its failures.
pub(super) fn excerpt(name: &str) -> String {
    match File::open(file(name, "log")) {
        Ok(log) => failures::excerpt(BufReader::new(log)),
        Err(error) => format!("its log cannot be read: {error}"),
    }
}

/// A file of a stage.
fn file(name: &str, extension: &str) -> PathBuf {
    folder().join(name.replace([' ', ':'], "-")).with_extension(extension)
}

/// Where logs and results are.
fn folder() -> PathBuf {
    target().join("xtask/stages")
}

/// Writes how stages ended, for the process that started this one.
pub(super) fn write_results(to: &Path, finished: &[Finished]) -> Result<()> {
    Ok(fs::write(to, serde_json::to_vec(finished)?)?)
}

fn read_results(from: &Path) -> Result<Vec<Finished>> {
    Ok(serde_json::from_slice(&fs::read(from)?)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test::stages;

    #[test]
    fn every_stage_is_in_one_lane_and_what_is_needed_comes_before() {
        let stages = stages::all(false, None).unwrap();
        let names: Vec<String> = stages.into_iter().map(|stage| stage.name).collect();
        let lanes = lanes(&names);
        let mut sorted = lanes.concat();
        sorted.sort_unstable();
        let mut expected: Vec<&str> = names.iter().map(String::as_str).collect();
        expected.sort_unstable();
        assert_eq!(sorted, expected);
        // Another processor runs the kernels of the stage `neon` itself.
        let exists = |name: &&str| *name == "neon" || names.iter().any(|known| known == name);
        let named = LANES.concat().into_iter().chain(NEEDS.iter().flat_map(|(_, needs)| *needs));
        assert_eq!(named.filter(|name| !exists(name)).collect::<Vec<_>>(), [""; 0]);
        let lane = |name: &str| lanes.iter().position(|lane| lane.contains(&name)).unwrap();
        for (name, needs) in NEEDS {
            assert!(
                needs.iter().all(|need| lane(need) != lane(name)),
                "a lane would wait for itself"
            );
        }
    }

    #[test]
    fn a_stage_waits_for_those_of_other_lanes() {
        let board = Board::default();
        let order = Mutex::new(vec![]);
        thread::scope(|scope| {
            scope.spawn(|| {
                board.wait_for(&["a", "b"]);
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
    fn another_process_learns_how_stages_ended() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("results.json");
        let stage = |name: &str, outcome| Finished {
            name: name.to_owned(),
            outcome,
            totals: Totals { passed: 3, failed: 1, skipped: 2 },
            time: Duration::from_millis(1500),
            cpu_time: None,
        };
        let stages = [
            stage("package", Outcome::Passed),
            stage("kernels", Outcome::Failed("x".into())),
            stage("npm test", Outcome::Absent("y".into())),
        ];
        write_results(&file, &stages).unwrap();
        let read = read_results(&file).unwrap();
        assert!(matches!(read[0].outcome, Outcome::Passed));
        assert!(matches!(&read[1].outcome, Outcome::Failed(why) if why == "x"));
        assert!(matches!(&read[2].outcome, Outcome::Absent(why) if why == "y"));
        assert_eq!((read[0].totals, read[0].time), (stages[0].totals, stages[0].time));
    }
}
