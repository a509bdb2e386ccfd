//! `cargo xtask test`: set-up, every stage, a table of minutes, the totals.

mod clients;
mod cpu_time;
mod cuda;
mod dependencies;
mod deploy;
mod examples;
mod failures;
mod fuzz;
mod gpu;
mod history;
mod lanes;
mod loom;
mod memory;
mod neon;
mod programs;
mod ptx;
mod python;
mod releases;
mod seed;
mod sql;
mod stage;
mod stages;
mod systems;
mod totals;
mod wheels;
pub(crate) mod workspace;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use self::history::{Due, History};
use self::lanes::Given;
use self::seed::Seed;
use self::stage::{Finished, Outcome, Stage};
use self::stages::Selection;
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
#[derive(clap::Args)]
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

    /// The stages to choose from: a stage that is named need not be of the plain check.
    fn selection(&self) -> Selection {
        let is_full = self.is_full() || !self.only.is_empty();
        Selection { is_full, is_long: self.long, minutes: self.minutes }
    }

    /// Arguments and variables of the process of a stage.
    fn given(&self) -> Result<Given> {
        if self.only.is_empty() {
            say(if self.is_full() { FULL } else { PLAIN });
            say(if may_install() { INSTALLS } else { INSTALLS_NOTHING });
        }
        let seed = Seed::choose(self.is_full())?;
        say(&seed.line());
        let flags = [("--full", self.full), ("--long", self.long)];
        let flags =
            flags.into_iter().filter(|(_, is_set)| *is_set).map(|(flag, _)| flag.to_owned());
        let minutes = self.minutes.map(|minutes| format!("--minutes={minutes}"));
        Ok(Given {
            arguments: flags.chain(minutes).collect(),
            variables: seed.variables(self.is_full()),
            is_shown: !self.only.is_empty(),
        })
    }
}

/// `cargo xtask test`.
pub(crate) fn run(options: &Options) -> Result<()> {
    let begun = Instant::now();
    let stages = chosen(stages::all(&options.selection())?, &options.only)?;
    if let Some(results) = &options.results {
        let finished: Vec<Finished> = stages.into_iter().map(Stage::run).collect();
        return lanes::write_results(results, &finished);
    }
    let given = options.given()?;
    let finished = if options.is_full() || given.is_shown {
        lanes::run(&stages.into_iter().map(|stage| stage.name).collect::<Vec<_>>(), &given)?
    } else {
        run_due(stages, &given)?
    };
    print!("{}", table(&finished, begun.elapsed())?);
    let failed = finished.iter().filter(|stage| matches!(stage.outcome, Outcome::Failed(_)));
    for stage in failed.filter(|_| !given.is_shown) {
        println!("\n{} failed:\n{}", stage.name, lanes::excerpt(&stage.name));
    }
    let failures = finished.iter().filter(|stage| is_failure(&stage.outcome, in_ci())).count();
    if failures > 0 {
        bail!("{failures} of {} stages failed", finished.len());
    }
    Ok(())
}

/// Runs the stages without inputs and those whose inputs have changed of late; all are in the result, in order.
fn run_due(stages: Vec<Stage>, given: &Given) -> Result<Vec<Finished>> {
    let history = History::read();
    let names: Vec<String> = stages.iter().map(|stage| stage.name.clone()).collect();
    let (mut due, mut reasons, mut finished) = (vec![], BTreeMap::new(), vec![]);
    for Stage { name, inputs, .. } in stages {
        if inputs.is_empty() {
            due.push(name);
            continue;
        }
        match history.due(inputs) {
            Due::No(why) => finished.push(Finished::without_work(name, Outcome::NotDue(why))),
            Due::Yes(why) => {
                reasons.insert(name.clone(), why);
                due.push(name);
            }
        }
    }
    let ran = lanes::run(&due, given)?;
    finished.extend(
        ran.into_iter().map(|stage| Finished { reason: reasons.remove(&stage.name), ..stage }),
    );
    finished.sort_by_key(|stage| names.iter().position(|name| *name == stage.name));
    Ok(finished)
}

/// The stages of these names, or all where none is named.
fn chosen(stages: Vec<Stage>, only: &[String]) -> Result<Vec<Stage>> {
    if let Some(unknown) = only.iter().find(|name| stages.iter().all(|stage| stage.name != **name))
    {
        let names: Vec<&str> = stages.iter().map(|stage| stage.name.as_str()).collect();
        bail!("no stage `{unknown}`; there are: {} (more with --long)", names.join(", "));
    }
    Ok(stages.into_iter().filter(|stage| only.is_empty() || only.contains(&stage.name)).collect())
}

/// Where everything must be there, what is not there is a failure.
fn is_failure(outcome: &Outcome, in_ci: bool) -> bool {
    match outcome {
        Outcome::Passed | Outcome::NotDue(_) => false,
        Outcome::Failed(_) => true,
        Outcome::Absent(_) => in_ci,
    }
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

    fn finished(outcome: Outcome, passed: u64) -> Finished {
        Finished {
            totals: Totals { passed, failed: 0, skipped: 0 },
            time: Duration::from_secs(90),
            cpu_time: Some(Duration::from_mins(2)),
            ..Finished::without_work("crates", outcome)
        }
    }

    #[test]
    fn the_table_ends_with_the_totals_on_a_line_of_their_own() {
        let stages = [finished(Outcome::Passed, 3), finished(Outcome::Failed("x\ny".into()), 4)];
        let text = table(&stages, Duration::from_mins(2)).unwrap();
        assert!(text.contains("all         2.0      4.0\n"), "{text}");
        assert!(
            text.contains("crates      1.5      2.0  ok (3 passed, 0 failed, 0 skipped)\n"),
            "{text}"
        );
        assert!(text.contains("FAILED (4 passed, 0 failed, 0 skipped): x\n"), "{text}");
        assert!(text.ends_with("\n7 passed, 0 failed, 0 skipped\n"), "{text}");
    }

    #[test]
    fn the_table_says_why_a_stage_with_inputs_ran_or_did_not() {
        let ran = Finished { reason: Some("abc touched x".into()), ..finished(Outcome::Passed, 0) };
        let text = table(&[ran, finished(Outcome::NotDue("no".into()), 0)], Duration::ZERO);
        let text = text.unwrap();
        assert!(text.contains("  ok, as abc touched x\n"), "{text}");
        assert!(text.contains("  not due: no\n"), "{text}");
    }

    #[test]
    fn stages_are_chosen_by_their_names() {
        let stages = || ["format", "npm check"].map(|name| Stage::absent(name, "x")).into();
        let names = |only: &[&str]| -> Result<Vec<String>> {
            let only: Vec<String> = only.iter().map(ToString::to_string).collect();
            Ok(chosen(stages(), &only)?.into_iter().map(|stage| stage.name).collect())
        };
        assert_eq!(names(&[]).unwrap(), ["format", "npm check"]);
        assert_eq!(names(&["npm check"]).unwrap(), ["npm check"]);
        let error = names(&["format", "npm"]).unwrap_err().to_string();
        assert_eq!(error, "no stage `npm`; there are: format, npm check (more with --long)");
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
