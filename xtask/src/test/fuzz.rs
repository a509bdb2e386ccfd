//! Fuzzing of the readers with libFuzzer, which follows the coverage of each input.
//!
//! libFuzzer is compiled from the crate that has its source, and the coverage that it follows is
//! asked of the stable compiler, so neither a nightly nor another tool is needed.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::programs::{Program, built};
use super::stage::Check;
use super::workspace::elsewhere;
use crate::files::under;
use crate::parallel::parallel_map;
use crate::shell::{find_program, program, root, say, target};
use crate::toolchain::{host, with_clippy};

/// A workspace of its own, which lists the targets.
pub(super) const MANIFEST: &str = "fuzz/Cargo.toml";

/// Its features. The second is for the long run alone: the crates below its targets take minutes to compile. Their
/// kept inputs are run by `tests/tests/fuzz`.
const FEATURES: &str = "hub";
const LONG_FEATURES: &str = "hub,text";

const IS_HERE: bool = cfg!(any(target_os = "linux", target_os = "macos"));
const NOT_HERE: &str = "libFuzzer is here for Linux and macOS";

const SHORT_SECONDS: f64 = 5.0;
const LONG_MINUTES: f64 = 30.0;

/// Seconds after which an input hangs.
const HANG: u32 = 30;

/// A target whose fixtures are not in a folder of its own name.
const FIXTURES: (&str, &str) = ("chat_template", "chat-templates");

/// Flags of the compiler, to count which edges of the control flow an input takes.
const FLAGS: [&str; 6] = [
    "--cfg=fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=3",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    // The numbers that are compared. An input then takes about 1.4 times as long, and in equal time more edges are
    // reached from seeds.
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
];

/// A part of each target's run.
struct Phase {
    /// Longest input.
    bytes: u64,
    /// After the names of its folders.
    suffix: &'static str,
    /// Its part of the time.
    part: f64,
}

/// Most of the time for short inputs: a small model fits, and a reader takes some microseconds. The rest for long ones.
const PHASES: [Phase; 2] = [
    Phase { bytes: 8 << 10, suffix: "", part: 0.75 },
    Phase { bytes: 100_000, suffix: "-long", part: 0.25 },
];

/// The stage; each target runs for the minutes that are given, or as long as is usual.
pub(super) fn test(check: &mut Check) -> Result<()> {
    check.needs(IS_HERE, NOT_HERE)?;
    check.needs_packages(find_program("c++").is_some(), "a C++ compiler", &["g++"])?;
    let long = check.options.long;
    let usual = if long { 60.0 * LONG_MINUTES } else { SHORT_SECONDS };
    let seconds = check.options.minutes.map_or(usual, |minutes| 60.0 * minutes.max(0.0));
    let mut targets = built(&mut build(long)?, false)?;
    targets.sort_by(|a, b| a.name.cmp(&b.name));
    say(&format!("{} targets for {seconds:.0} s each", targets.len()));
    let ran = parallel_map(&targets, |target| {
        let mut all = Run::default();
        for phase in &PHASES {
            match run_phase(target, phase, seconds * phase.part).context(target.name.clone())? {
                Ok(run) => all = Run { executions: all.executions + run.executions, ..run },
                failed => return Ok(failed),
            }
        }
        Ok(Ok(all))
    })?;
    let mut executions = 0;
    for (Program { name, .. }, outcome) in targets.iter().zip(&ran) {
        match outcome {
            Ok(run) => {
                println!("fuzz target {name}: {} executions; {}", run.executions, run.progress);
                executions += run.executions;
                check.totals.passed += 1;
            }
            Err(why) => {
                println!("fuzz target {name}: {why}");
                check.totals.failed += 1;
            }
        }
    }
    println!("fuzz targets: {executions} executions");
    ensure!(check.totals.failed == 0, "a target failed, see above");
    Ok(())
}

/// Everything that fuzzing makes, the inputs that it found among them.
fn folder() -> PathBuf {
    target().join("fuzz")
}

/// Builds the targets, and lints them.
fn build(long: bool) -> Result<Command> {
    let features = if long { LONG_FEATURES } else { FEATURES };
    // With a target named, build scripts and macros are compiled without the flags.
    let line = format!("build --quiet --release --target {} --features {features}", host()?);
    let mut command = elsewhere(&line, MANIFEST, "fuzz");
    command.env("RUSTFLAGS", FLAGS.join(" ")).env_remove("CARGO_ENCODED_RUSTFLAGS");
    with_clippy(&mut command)?;
    Ok(command)
}

/// A target's run without a finding.
#[derive(Debug, Default, PartialEq)]
struct Run {
    executions: u64,
    /// libFuzzer's last line, with the edges reached and the inputs kept.
    progress: String,
}

impl Run {
    /// What libFuzzer's log says.
    fn of_log(text: &str) -> Self {
        let done = text.lines().filter_map(|line| line.strip_prefix("Done ")?.split(' ').next());
        let executions = done.filter_map(|number| number.parse::<u64>().ok()).sum();
        let progress = text.lines().rfind(|line| line.contains(" cov: "));
        Self { executions, progress: progress.unwrap_or("no progress").to_owned() }
    }
}

/// Runs a target. New inputs that reach further go to a corpus in the target folder, where the
/// next run finds them; those in the repository are only read. Longer ones have a corpus of their own: cut short they
/// would say little.
fn run_phase(target: &Program, phase: &Phase, seconds: f64) -> Result<Result<Run, String>> {
    let Program { name, path, .. } = target;
    let made = |kind: &str, suffix: &str| -> Result<PathBuf> {
        let folder = folder().join(kind).join(format!("{name}{suffix}"));
        fs::create_dir_all(&folder)?;
        Ok(folder)
    };
    let artifacts = made("artifacts", "")?;
    let log = made("logs", phase.suffix)?.join("log.txt");
    let output = File::create(&log)?;
    let mut command = program(path);
    // The first is written to, too.
    command.arg(made("corpus", phase.suffix)?).arg(made("corpus", "")?);
    let (seeds, longest) = seeds(name, phase.bytes)?;
    if !seeds.is_empty() {
        command.arg(format!("-seed_inputs={}", seeds.join(",")));
    }
    let dictionary = root().join("fuzz/dictionaries").join(format!("{name}.txt"));
    if dictionary.is_file() {
        command.arg(format!("-dict={}", dictionary.display()));
    }
    let status = command
        .arg(format!("-max_total_time={:.0}", seconds.floor().max(1.0)))
        .arg(format!("-max_len={longest}"))
        .arg(format!("-timeout={HANG}"))
        .arg(format!("-artifact_prefix={}/", artifacts.display()))
        // One thread, so that an input always takes the same way.
        .env("RAYON_NUM_THREADS", "1")
        .stdout(output.try_clone()?)
        .stderr(output)
        .status()?;
    let text = String::from_utf8_lossy(&fs::read(&log)?).into_owned();
    if status.success() {
        return Ok(Ok(Run::of_log(&text)));
    }
    let said = text.lines().find(|line| line.contains("panicked at") || line.contains("ERROR:"));
    let (said, artifacts, log) = (said.unwrap_or("no message"), artifacts.display(), log.display());
    Ok(Err(format!("{status}: {said}; the input is in {artifacts}, all in {log}")))
}

/// Kept inputs of a target, fixtures of at most this many bytes, and the length of the longest, which is no less.
fn seeds(target: &str, bytes: u64) -> Result<(Vec<String>, u64)> {
    let fixtures = if target == FIXTURES.0 { FIXTURES.1 } else { target };
    let (mut seeds, mut longest) = (vec![], bytes);
    for (folder, name, most) in
        [("fuzz/corpus", target, u64::MAX), ("tests/fixtures", fixtures, bytes)]
    {
        for file in under(&root().join(folder).join(name))? {
            let length = fs::metadata(&file)?.len();
            if length <= most {
                seeds.push(file.display().to_string());
                longest = longest.max(length);
            }
        }
    }
    Ok((seeds, longest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executions_and_progress_are_in_the_log() {
        let text = "INFO: seed corpus\n#2\tINITED cov: 5 ft: 6\n#131072\tpulse  cov: 7 ft: 9\n\
                    #143297\tDONE   cov: 8 ft: 9\nDone 143297 runs in 9 second(s)\n";
        let progress = "#143297\tDONE   cov: 8 ft: 9".to_owned();
        assert_eq!(Run::of_log(text), Run { executions: 143_297, progress });
    }
}
