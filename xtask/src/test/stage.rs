//! One stage of `cargo xtask test`: its commands, run in turn, and their outcome.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use super::cpu_time::cpu_time;
use super::totals::Totals;
use crate::shell::{say, typed};

/// What a stage does; it counts tests in its argument.
pub(super) type Work = Box<dyn FnOnce(&mut Totals) -> Result<()>>;

/// A stage.
pub(super) struct Stage {
    /// Its name in the table.
    pub(super) name: String,
    /// What it does, or why it cannot be done here.
    pub(super) work: Result<Work, String>,
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
}

impl Stage {
    /// A stage that does `work`.
    pub(super) fn new(
        name: impl Into<String>,
        work: impl FnOnce(&mut Totals) -> Result<()> + 'static,
    ) -> Self {
        Self { name: name.into(), work: Ok(Box::new(work)) }
    }

    /// A stage whose subject is not there.
    pub(super) fn absent(name: impl Into<String>, why: impl Into<String>) -> Self {
        Self { name: name.into(), work: Err(why.into()) }
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
        Finished { name: self.name, outcome, totals, time: begun.elapsed(), cpu_time }
    }
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
