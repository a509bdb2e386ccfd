//! One stage of `cargo xtask test`: a row of the table of stages, its work, and how it ended.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use super::Options;
use super::cpu_time::cpu_time;
use super::totals::Totals;
use crate::machine::{install_packages, may_install};
use crate::shell::{in_ci, run, say, typed};

/// The least check that has a stage.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
pub(super) enum Kind {
    Plain,
    Full,
    Long,
}

/// A stage.
pub(super) struct Stage {
    /// Its name in the table.
    pub(super) name: &'static str,
    work: fn(&mut Check) -> Result<()>,
    pub(super) kind: Kind,
    /// Stages of a lane run one after the other, beside those of other lanes.
    pub(super) lane: usize,
    /// Stages of other lanes that it waits for: it takes what they make.
    pub(super) needs: &'static [&'static str],
    /// Paths; where there are any, a plain check runs the stage only if a late commit touched one of them.
    pub(super) inputs: &'static [&'static str],
}

/// The check as seen by the work of a stage, and the tests that the stage has counted.
pub(super) struct Check {
    /// The stage's name.
    pub(super) stage: &'static str,
    pub(super) options: Options,
    pub(super) totals: Totals,
    is_absent: bool,
}

/// How a stage ended.
#[derive(Default, Serialize, Deserialize)]
pub(super) enum Outcome {
    /// Everything in it succeeded.
    #[default]
    Passed,
    /// Something in it failed.
    Failed(String),
    /// It is not there, and why.
    Absent(String),
    /// It need not run, and why.
    NotDue(String),
}

/// A finished stage. Its own process writes what is not skipped.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Finished {
    #[serde(skip)]
    pub(super) name: &'static str,
    pub(super) outcome: Outcome,
    pub(super) totals: Totals,
    #[serde(skip)]
    pub(super) time: Duration,
    /// CPU time, where it is known.
    pub(super) cpu_time: Option<Duration>,
    /// Why it ran, where it has inputs.
    #[serde(skip)]
    pub(super) reason: Option<String>,
}

/// A stage of the first lane and of every check.
pub(super) const fn stage(name: &'static str, work: fn(&mut Check) -> Result<()>) -> Stage {
    Stage { name, work, kind: Kind::Plain, lane: 0, needs: &[], inputs: &[] }
}

impl Stage {
    pub(super) const fn of(self, kind: Kind) -> Self {
        Self { kind, ..self }
    }

    pub(super) const fn lane(self, lane: usize) -> Self {
        Self { lane, ..self }
    }

    pub(super) const fn after(self, needs: &'static [&'static str]) -> Self {
        Self { needs, ..self }
    }

    pub(super) const fn inputs(self, inputs: &'static [&'static str]) -> Self {
        Self { inputs, ..self }
    }

    /// Does all its work in this process, and never fails: how it ended is in the result.
    pub(super) fn run(&self, options: &Options) -> Finished {
        let (totals, options) = (Totals::default(), options.clone());
        let mut check = Check { stage: self.name, options, totals, is_absent: false };
        say(&format!("=== {}", self.name));
        let outcome = match (self.work)(&mut check) {
            Ok(()) => Outcome::Passed,
            Err(why) if check.is_absent => Outcome::Absent(why.to_string()),
            Err(error) => {
                say(&format!("{} failed: {error:#}", self.name));
                Outcome::Failed(format!("{error:#}"))
            }
        };
        Finished { outcome, totals: check.totals, cpu_time: cpu_time(), ..Finished::default() }
    }
}

impl Check {
    /// Goes on only where the stage's subject is there.
    pub(super) fn needs(&mut self, is_there: bool, why: &str) -> Result<()> {
        self.is_absent = !is_there;
        ensure!(is_there, "{why}");
        Ok(())
    }

    /// The same, of something that Debian's packages bring, which are installed where they may be.
    pub(super) fn needs_packages(
        &mut self,
        has: bool,
        what: &str,
        packages: &[&str],
    ) -> Result<()> {
        if !has && may_install() {
            return install_packages(packages);
        }
        let packages = packages.join(" ");
        let why = format!("needs {what}; on Debian, as root: apt-get install {packages}");
        self.needs(has, &why)
    }

    /// Tests whose tools are not there are skipped, where not everything must be there.
    pub(super) fn skip(&mut self, tests: usize, why: &str) -> Result<()> {
        ensure!(!in_ci(), "{why}");
        say(&format!("{why}: {tests} tests are skipped"));
        self.totals.skipped += tests as u64;
        Ok(())
    }

    /// Runs a program that judges one thing.
    pub(super) fn pass(&mut self, command: &mut Command) -> Result<()> {
        run(command)?;
        self.totals.passed += 1;
        Ok(())
    }

    /// Runs a test runner: shows what it prints, and counts its tests.
    pub(super) fn count(&mut self, command: &mut Command) -> Result<()> {
        let name = typed(command);
        command.env("NO_COLOR", "1").env("FORCE_COLOR", "0").stdout(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("cannot start `{name}`"))?;
        let stdout = child.stdout.take().context("a piped output")?;
        let mut shown = std::io::stdout().lock();
        for line in BufReader::new(stdout).split(b'\n') {
            let line = String::from_utf8_lossy(&line?).into_owned();
            writeln!(shown, "{line}")?;
            self.totals.add_text(&line);
        }
        let status = child.wait()?;
        ensure!(status.success(), "`{name}` failed: {status}");
        Ok(())
    }
}
