//! `cargo xtask test`: set-up, every stage, a table of minutes, the totals.

mod clients;
mod compared;
mod cpu_time;
mod cuda;
mod dependencies;
mod deploy;
mod examples;
mod fuzz;
mod gpu;
mod history;
mod lanes;
mod memory;
mod neon;
mod programs;
mod python;
mod seed;
mod sql;
mod stage;
mod stages;
mod systems;
mod totals;
mod wheels;
pub(crate) mod workspace;

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use self::history::History;
use self::stage::{Finished, Kind, Outcome, Stage};
use self::totals::Totals;
use crate::machine::may_install;
use crate::shell::{in_ci, say};

/// The first lines of a check.
const PLAIN: &str = "the plain check; docs/testing.md lists its stages and how long checks took";
const FULL: &str = "the full check takes about an hour on two cores, with --long some hours";
const INSTALLS: &str = "it installs Debian's packages of browsers, emulators, drivers and proxies, and fetches packages \
                        of npm and PyPI into `target`, their folders and the user's cache folder";
const INSTALLS_NOTHING: &str = "it fetches packages of npm and PyPI into `target`, their folders and the user's cache \
                                folder; a stage that lacks a program of the system says how to install it";

/// What to test.
#[derive(Clone, Default, clap::Args)]
pub(crate) struct Options {
    /// Everything that a night has time for, with a new seed.
    #[arg(long)]
    full: bool,
    /// The same, and what takes hours.
    #[arg(long)]
    long: bool,
    /// Only these stages, by the names in the table.
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    only: Vec<String>,
    /// Minutes for each fuzz target, instead of five seconds, or with --long of 30.
    #[arg(long, value_name = "N")]
    minutes: Option<f64>,
    /// Be the process of a stage: write how it ended into this file.
    #[arg(long, hide = true, value_name = "FILE")]
    results: Option<PathBuf>,
}

impl Options {
    fn is_full(&self) -> bool {
        self.full || self.long
    }

    /// Stages that are named have their output shown, one after the other.
    fn is_shown(&self) -> bool {
        !self.only.is_empty()
    }

    /// The stages of this check, or those that are named: one of these need not be of the plain check.
    fn chosen(&self) -> Result<Vec<&'static Stage>> {
        let kind = match (self.long, self.full || self.is_shown()) {
            (true, _) => Kind::Long,
            (false, true) => Kind::Full,
            (false, false) => Kind::Plain,
        };
        let mut stages: Vec<_> = stages::ALL.iter().filter(|stage| stage.kind <= kind).collect();
        let names: Vec<&str> = stages.iter().map(|stage| stage.name).collect();
        if let Some(unknown) = self.only.iter().find(|name| !names.contains(&name.as_str())) {
            bail!("no stage `{unknown}`; there are: {} (more with --long)", names.join(", "));
        }
        stages.retain(|stage| !self.is_shown() || self.only.iter().any(|name| name == stage.name));
        Ok(stages)
    }
}

/// `cargo xtask test`.
pub(crate) fn run(options: &Options) -> Result<()> {
    let begun = Instant::now();
    let stages = options.chosen()?;
    if let Some(results) = &options.results {
        let stage = stages.first().context("no stage is named")?;
        return Ok(fs::write(results, serde_json::to_vec(&stage.run(options))?)?);
    }
    if !options.is_shown() {
        say(if options.is_full() { FULL } else { PLAIN });
        say(if may_install() { INSTALLS } else { INSTALLS_NOTHING });
    }
    let finished = run_due(&stages, options, seed::choose(options.is_full())?)?;
    print!("{}", table(&finished, begun.elapsed())?);
    let failed = finished.iter().filter(|stage| matches!(stage.outcome, Outcome::Failed(_)));
    for stage in failed.filter(|_| !options.is_shown()) {
        println!("\n{} failed:\n{}", stage.name, lanes::excerpt(stage.name));
    }
    let failures = finished.iter().filter(|stage| is_failure(&stage.outcome, in_ci())).count();
    ensure!(failures == 0, "{failures} of {} stages failed", finished.len());
    Ok(())
}

/// Runs the stages; of a plain check those without inputs and those whose inputs have changed of late. All are in the
/// result, in order.
fn run_due(stages: &[&'static Stage], options: &Options, seed: u32) -> Result<Vec<Finished>> {
    let history = (!options.is_full() && !options.is_shown()).then(History::read);
    let (mut due, mut finished) = (vec![], vec![]);
    for &stage in stages {
        let history = history.as_ref().filter(|_| !stage.inputs.is_empty());
        match history.map(|history| history.due(stage.inputs)).transpose() {
            Ok(reason) => due.push((stage, reason)),
            Err(why) => {
                let outcome = Outcome::NotDue(why);
                finished.push(Finished { name: stage.name, outcome, ..Finished::default() });
            }
        }
    }
    finished.extend(lanes::run(due, options, seed)?);
    finished.sort_by_key(|done| stages.iter().position(|stage| stage.name == done.name));
    Ok(finished)
}

/// Where everything must be there, what is not there is a failure.
fn is_failure(outcome: &Outcome, in_ci: bool) -> bool {
    matches!(outcome, Outcome::Failed(_)) || in_ci && matches!(outcome, Outcome::Absent(_))
}

fn table(finished: &[Finished], elapsed: Duration) -> Result<String> {
    let width = finished.iter().map(|stage| stage.name.len()).max().unwrap_or(0);
    let mut text = format!("\n{:width$}  minutes  CPU min  result\n", "stage");
    let (mut sum, mut cpu_time) = (Totals::default(), None);
    for stage in finished {
        let counted = match stage.totals {
            Totals { passed: 0, failed: 0, skipped: 0 } => String::new(),
            totals => format!(" ({})", totals.plain()),
        };
        let result = match &stage.outcome {
            Outcome::Passed => format!("ok{counted}"),
            Outcome::Failed(why) => {
                format!("FAILED{counted}: {}", why.lines().next().unwrap_or_default())
            }
            Outcome::Absent(why) => format!("not there: {why}"),
            Outcome::NotDue(why) => format!("not due: {why}"),
        };
        let reason = stage.reason.as_ref().map_or_else(String::new, |why| format!(", as {why}"));
        let (time, taken) = (minutes(stage.time), minutes(stage.cpu_time));
        writeln!(text, "{:width$}  {time:>7}  {taken:>7}  {result}{reason}", stage.name)?;
        sum.add(stage.totals);
        cpu_time = [cpu_time, stage.cpu_time].into_iter().flatten().reduce(|a, b| a + b);
    }
    let (time, taken) = (minutes(elapsed), minutes(cpu_time));
    writeln!(text, "{:width$}  {time:>7}  {taken:>7}\n\n{}", "all", sum.plain())?;
    Ok(text)
}

/// Nothing where it is not known.
fn minutes(time: impl Into<Option<Duration>>) -> String {
    time.into().map_or_else(String::new, |time| format!("{:.1}", time.as_secs_f64() / 60.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_says_why_and_ends_with_the_totals_on_a_line_of_their_own() {
        let finished = |outcome, passed, reason: Option<&str>| Finished {
            name: "crates",
            outcome,
            totals: Totals { passed, ..Totals::default() },
            time: Duration::from_secs(90),
            cpu_time: Some(Duration::from_mins(2)),
            reason: reason.map(str::to_owned),
        };
        let stages = [
            finished(Outcome::Passed, 3, Some("abc touched x")),
            finished(Outcome::Failed("x\ny".into()), 4, None),
            finished(Outcome::NotDue("no".into()), 0, None),
        ];
        let expected = "\nstage   minutes  CPU min  result\n\
            crates      1.5      2.0  ok (3 passed, 0 failed, 0 skipped), as abc touched x\n\
            crates      1.5      2.0  FAILED (4 passed, 0 failed, 0 skipped): x\n\
            crates      1.5      2.0  not due: no\n\
            all         2.0      6.0\n\n7 passed, 0 failed, 0 skipped\n";
        assert_eq!(table(&stages, Duration::from_mins(2)).unwrap(), expected);
    }

    #[test]
    fn stages_are_chosen_by_their_names() {
        let names = |only: &[&str]| -> Result<Vec<&str>> {
            let only = only.iter().map(ToString::to_string).collect();
            let stages = Options { only, ..Options::default() }.chosen()?;
            Ok(stages.iter().map(|stage| stage.name).collect())
        };
        assert_eq!(names(&["npm check", "fuzz"]).unwrap(), ["fuzz", "npm check"]);
        assert!(!names(&[]).unwrap().contains(&"fuzz"), "a full check alone has it");
        let error = names(&["format", "npm"]).unwrap_err().to_string();
        assert!(error.starts_with("no stage `npm`; there are: format, tidy, "), "{error}");
    }

    #[test]
    fn what_is_not_there_fails_only_where_it_must_be() {
        assert!(!is_failure(&Outcome::Absent("x".into()), false));
        assert!(is_failure(&Outcome::Absent("x".into()), true));
        assert!(is_failure(&Outcome::Failed("x".into()), false));
        assert!(!is_failure(&Outcome::Passed, true));
        assert!(!is_failure(&Outcome::NotDue("x".into()), true));
    }
}
