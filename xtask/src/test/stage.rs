//! One stage of `cargo xtask test`: its commands, run in turn, and their outcome.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};

use super::cpu_time::cpu_time;
use super::totals::Totals;
use crate::shell::{in_ci, say, typed};

/// What a stage does; it counts tests in its argument.
pub(super) type Work = Box<dyn FnOnce(&mut Totals) -> Result<()>>;

/// A stage.
pub(super) struct Stage {
    /// Its name in the table.
    pub(super) name: String,
    /// What it does, or why it cannot be done here.
    pub(super) work: Result<Work, String>,
    /// Paths; where there are any, a plain check runs the stage only if a late commit touched one of them.
    pub(super) inputs: &'static [&'static str],
}

/// How a stage ended.
#[derive(Serialize, Deserialize)]
pub(super) enum Outcome {
    /// Everything in it succeeded.
    Passed,
    /// Something in it failed.
    Failed(String),
    /// It is not there, and why.
    Absent(String),
    /// It need not run, and why.
    NotDue(String),
}

/// A finished stage.
#[derive(Serialize, Deserialize)]
pub(super) struct Finished {
    pub(super) name: String,
    pub(super) outcome: Outcome,
    pub(super) totals: Totals,
    pub(super) time: Duration,
    /// CPU time, where it is known.
    pub(super) cpu_time: Option<Duration>,
    /// Why it ran, where it has inputs.
    pub(super) reason: Option<String>,
}

impl Finished {
    /// A stage that has done nothing.
    pub(super) fn without_work(name: impl Into<String>, outcome: Outcome) -> Self {
        let (name, totals, time) = (name.into(), Totals::default(), Duration::ZERO);
        Self { name, outcome, totals, time, cpu_time: None, reason: None }
    }
}

impl Stage {
    /// A stage that does `work`.
    pub(super) fn new(
        name: impl Into<String>,
        work: impl FnOnce(&mut Totals) -> Result<()> + 'static,
    ) -> Self {
        Self { name: name.into(), work: Ok(Box::new(work)), inputs: &[] }
    }

    /// A stage whose subject is not there.
    pub(super) fn absent(name: impl Into<String>, why: impl Into<String>) -> Self {
        Self { name: name.into(), work: Err(why.into()), inputs: &[] }
    }

    /// The same, which a plain check runs only if one of `inputs` has changed of late.
    pub(super) fn for_changes_of(self, inputs: &'static [&'static str]) -> Self {
        Self { inputs, ..self }
    }

    /// Does it, and never fails: how it ended is in the result.
    pub(super) fn run(self) -> Finished {
        let (begun, taken) = (Instant::now(), cpu_time());
        let mut totals = Totals::default();
        let outcome = match self.work {
            Err(why) => Outcome::Absent(why),
            Ok(work) => {
                say(&format!("=== {}", self.name));
                match work(&mut totals) {
                    Ok(()) => Outcome::Passed,
                    Err(error) => {
                        say(&format!("{} failed: {error:#}", self.name));
                        Outcome::Failed(format!("{error:#}"))
                    }
                }
            }
        };
        let cpu_time = cpu_time().zip(taken).map(|(now, before)| now.saturating_sub(before));
        let (name, time) = (self.name, begun.elapsed());
        Finished { name, outcome, totals, time, cpu_time, reason: None }
    }
}

/// Tests whose tools are not there are skipped, where not everything must be there.
pub(super) fn skip(tests: usize, why: &str, totals: &mut Totals) -> Result<()> {
    ensure!(!in_ci(), "{why}");
    say(&format!("{why}: {tests} tests are skipped"));
    totals.skipped += tests as u64;
    Ok(())
}

/// Runs a test runner: shows what it prints, and counts its tests.
pub(super) fn count(command: &mut Command, totals: &mut Totals) -> Result<()> {
    let name = typed(command);
    command.env("NO_COLOR", "1").env("FORCE_COLOR", "0");
    let mut child =
        command.stdout(Stdio::piped()).spawn().with_context(|| format!("cannot start `{name}`"))?;
    let stdout = child.stdout.take().context("a piped output")?;
    let mut shown = std::io::stdout().lock();
    for line in BufReader::new(stdout).split(b'\n') {
        let line = String::from_utf8_lossy(&line?).into_owned();
        writeln!(shown, "{line}")?;
        if let Some(found) = Totals::of_line(&line) {
            totals.add(found);
        }
    }
    let status = child.wait()?;
    if !status.success() {
        bail!("`{name}` failed: {status}");
    }
    Ok(())
}
