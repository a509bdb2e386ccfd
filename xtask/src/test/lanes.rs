//! Lanes of stages that run beside each other: a linker, a browser or a download leaves a processor free.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result};

use super::failures;
use super::stage::{Finished, Outcome};
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
        "neon tests",
        "systems",
        "features",
        "documentation",
        "kernels",
        "cuda",
    ],
    &["clients", "deploy", "shaders", "page", "npm test:equality", "web check", "web test"],
];

/// Stages that wait for stages of other lanes: they take the command or an example, two also the tarball.
const NEEDS: [(&str, &[&str]); 5] = [
    ("clients", &["crates"]),
    ("deploy", &["crates"]),
    ("shaders", &["crates"]),
    ("page", &["package", "crates"]),
    ("npm test:equality", &["package", "crates"]),
];

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

/// Arguments and variables of the process of a stage.
pub(super) struct Given {
    pub(super) arguments: Vec<String>,
    pub(super) variables: Vec<(&'static str, String)>,
    /// Its output is shown while it runs; otherwise it goes to a log, which is shown at its end.
    pub(super) is_shown: bool,
}

/// Runs the stages of these names, each in a process of its own, and returns how they ended: in lanes, or one after
/// the other where their output is shown.
pub(super) fn run(names: &[String], given: &Given) -> Result<Vec<Finished>> {
    fs::create_dir_all(folder())?;
    let board = Board::default();
    let in_turn = || vec![names.iter().map(String::as_str).collect()];
    let lanes = if given.is_shown { in_turn() } else { lanes(names) };
    let finished = thread::scope(|scope| {
        let lanes: Vec<_> = lanes
            .into_iter()
            .map(|lane| scope.spawn(|| run_lane(lane, names, given, &board)))
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

fn run_lane(lane: Vec<&str>, all: &[String], given: &Given, board: &Board) -> Vec<Finished> {
    let mut finished = vec![];
    for name in lane {
        let needs = NEEDS.iter().filter(|(stage, _)| *stage == name).flat_map(|(_, needs)| *needs);
        let is_run = |need: &&&str| all.iter().any(|name| name == *need);
        let needs: Vec<&str> = needs.filter(is_run).copied().collect();
        if !given.is_shown {
            board.wait_for(&needs);
        }
        finished.push(run_stage(name, given).unwrap_or_else(|error| {
            Finished::without_work(name, Outcome::Failed(format!("{error:#}")))
        }));
        board.has_ended(name);
    }
    finished
}

/// Runs a stage in a process of its own.
fn run_stage(name: &str, given: &Given) -> Result<Finished> {
    let (log, results) = (file(name, "log"), file(name, "json"));
    if results.exists() {
        fs::remove_file(&results)?;
    }
    let mut stage = Command::new(std::env::current_exe()?);
    stage.current_dir(root()).args(["test", "--only", name, "--results"]).arg(&results);
    stage.args(&given.arguments).envs(given.variables.iter().cloned()).stdin(Stdio::null());
    let begun = Instant::now();
    if given.is_shown {
        stage.status().context("cannot start a process")?;
    } else {
        say(&format!("=== {name} begins: {}", log.display()));
        let output = File::create(&log)?;
        stage.stdout(output.try_clone()?).stderr(output);
        stage.status().context("cannot start a process")?;
        // One log after the other.
        let mut shown = io::stderr().lock();
        io::copy(&mut File::open(&log)?, &mut shown)?;
    }
    let finished = read_results(&results).context("its process ended without a result")?;
    let finished = finished.into_iter().next().context("no such stage")?;
    Ok(Finished { time: begun.elapsed(), ..finished })
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
    use std::time::Duration;

    use super::*;
    use crate::test::stages::{self, Selection};
    use crate::test::totals::Totals;

    #[test]
    fn every_stage_is_in_one_lane_and_what_is_needed_comes_before() {
        let stages = stages::all(&Selection { is_full: true, ..Selection::default() }).unwrap();
        let names: Vec<String> = stages.into_iter().map(|stage| stage.name).collect();
        let lanes = lanes(&names);
        let mut sorted = lanes.concat();
        sorted.sort_unstable();
        let mut expected: Vec<&str> = names.iter().map(String::as_str).collect();
        expected.sort_unstable();
        assert_eq!(sorted, expected);
        // Another processor runs the kernels of the stage `neon` itself.
        let exists = |name: &&str| *name == "neon" || names.iter().any(|known| known == name);
        let needed = NEEDS.iter().flat_map(|(_, needs)| needs.iter().copied());
        let named = LANES.concat().into_iter().chain(needed);
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
    fn every_input_is_the_beginning_of_a_path() {
        let files = crate::shell::output(crate::shell::program("git").arg("ls-files")).unwrap();
        let all = stages::all(&Selection::default()).unwrap();
        let inputs = all.iter().flat_map(|stage| stage.inputs);
        let is_there = |input: &&&str| files.lines().any(|file| file.starts_with(**input));
        assert_eq!(inputs.filter(|input| !is_there(input)).collect::<Vec<_>>(), [&""; 0]);
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
            outcome,
            totals: Totals { passed: 3, failed: 1, skipped: 2 },
            time: Duration::from_millis(1500),
            ..Finished::without_work(name, Outcome::Passed)
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
