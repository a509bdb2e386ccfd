//! Fuzzing of the readers with libFuzzer, which follows the coverage of each input.
//!
//! libFuzzer is compiled from the crate that has its source, and the coverage that it follows is
//! asked of the stable compiler, so neither a nightly nor another tool is needed.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::stage::Stage;
use super::totals::Totals;
use crate::files::under;
use crate::machine::{install_packages, may_install};
use crate::parallel::parallel_map;
use crate::shell::{cargo, find_program, program, root, run, say, target};
use crate::toolchain::{host, with_clippy};

/// A workspace of its own.
pub(super) const MANIFEST: &str = "fuzz/Cargo.toml";
const DEBIAN_PACKAGES: [&str; 1] = ["g++"];
const NOT_HERE: &str = "libFuzzer is here for Linux and macOS";
const NO_COMPILER: &str = "needs a C++ compiler; on Debian, as root: apt-get install g++";

const SHORT: Duration = Duration::from_secs(5);
const LONG_MINUTES: f64 = 30.0;

/// Longest input of most of the time: a small model fits, and a reader takes some microseconds.
const SHORT_BYTES: u64 = 8 << 10;

/// Longest input of the rest of it.
const LONG_BYTES: u64 = 100_000;

/// Parts of the time that phases share.
const PARTS: u32 = 4;

/// Seconds after which an input hangs.
const HANG: u32 = 30;

/// A fuzz target, and the fixtures that are its seeds beside those kept for it.
struct Target {
    name: &'static str,
    fixtures: Option<&'static str>,
}

const TARGETS: [Target; 9] = [
    Target { name: "headers", fixtures: None },
    Target { name: "safetensors", fixtures: None },
    Target { name: "folder", fixtures: None },
    Target { name: "config", fixtures: None },
    Target { name: "gguf", fixtures: Some("gguf") },
    Target { name: "onnx", fixtures: Some("onnx") },
    Target { name: "setun", fixtures: Some("setun") },
    Target { name: "manifest", fixtures: None },
    Target { name: "hub_answers", fixtures: None },
];

/// In the long run alone: the crates below them take minutes to compile. Their kept inputs are run
/// by `tests/tests/fuzz`.
const LONG_TARGETS: [Target; 8] = [
    Target { name: "tokenizer", fixtures: None },
    Target { name: "chat_template", fixtures: Some("chat-templates") },
    Target { name: "session", fixtures: None },
    Target { name: "equal_bits", fixtures: None },
    Target { name: "json_schema", fixtures: None },
    Target { name: "lark", fixtures: None },
    Target { name: "gbnf", fixtures: None },
    Target { name: "regex", fixtures: None },
];

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

/// The stage; each target runs for `minutes`, or as long as is usual.
pub(super) fn stage(long: bool, minutes: Option<f64>) -> Stage {
    if !cfg!(any(target_os = "linux", target_os = "macos")) {
        return Stage::absent("fuzz", NOT_HERE);
    }
    if find_program("c++").is_none() && !may_install() {
        return Stage::absent("fuzz", NO_COMPILER);
    }
    let usual = if long { Duration::from_secs_f64(60.0 * LONG_MINUTES) } else { SHORT };
    let time = minutes.map_or(usual, |minutes| Duration::from_secs_f64(60.0 * minutes.max(0.0)));
    Stage::new("fuzz", move |totals| test(long, time, totals))
}

fn test(long: bool, time: Duration, totals: &mut Totals) -> Result<()> {
    if find_program("c++").is_none() {
        install_packages(&DEBIAN_PACKAGES)?;
    }
    let host = host()?;
    run(&mut build(&host, long)?)?;
    let programs = folder().join(&host).join("release");
    let more: &[Target] = if long { &LONG_TARGETS } else { &[] };
    let targets: Vec<_> = TARGETS.iter().chain(more).collect();
    say(&format!("{} targets for {} s each", targets.len(), time.as_secs()));
    let ran = parallel_map(&targets, |target| {
        let outcome = target.run(&programs, time).with_context(|| target.name)?;
        Ok((target.name, outcome))
    })?;
    for (name, outcome) in &ran {
        match outcome {
            Ok(Run { executions, progress }) => {
                println!("fuzz target {name}: {executions} executions; {progress}");
            }
            Err(why) => println!("fuzz target {name}: {why}"),
        }
        *(if outcome.is_ok() { &mut totals.passed } else { &mut totals.failed }) += 1;
    }
    let runs = ran.iter().filter_map(|(_, outcome)| outcome.as_ref().ok());
    println!("fuzz targets: {} executions", runs.map(|run| run.executions).sum::<u64>());
    ensure!(ran.iter().all(|(_, outcome)| outcome.is_ok()), "a target failed, see above");
    Ok(())
}

/// Everything that fuzzing makes, the inputs that it found among them.
fn folder() -> PathBuf {
    target().join("fuzz")
}

/// A part of each target's run.
struct Phase {
    /// Longest input.
    bytes: u64,
    /// After the names of its folders.
    suffix: &'static str,
    /// Parts of the time.
    parts: u32,
}

/// Most of the time for short inputs, the rest for long ones.
const PHASES: [Phase; 2] = [
    Phase { bytes: SHORT_BYTES, suffix: "", parts: 3 },
    Phase { bytes: LONG_BYTES, suffix: "-long", parts: 1 },
];

/// Builds the targets, and lints them.
fn build(host: &str, long: bool) -> Result<Command> {
    let mut command = cargo();
    command
        .args(["build", "--quiet", "--locked", "--release", "--manifest-path", MANIFEST])
        // With a target named, build scripts and macros are compiled without the flags.
        .args(["--target", host])
        .arg(if long { "--features=hub,text" } else { "--features=hub" })
        .env("CARGO_TARGET_DIR", folder())
        .env("RUSTFLAGS", FLAGS.join(" "))
        .env_remove("CARGO_ENCODED_RUSTFLAGS");
    with_clippy(&mut command)?;
    Ok(command)
}

/// How a target ran, or why it failed.
type Outcome = Result<Run, String>;

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

impl Target {
    fn run(&self, programs: &Path, time: Duration) -> Result<Outcome> {
        let mut all = Run::default();
        for phase in &PHASES {
            match self.run_phase(programs, phase, time * phase.parts / PARTS)? {
                Ok(run) => all = Run { executions: all.executions + run.executions, ..run },
                Err(why) => return Ok(Err(why)),
            }
        }
        Ok(Ok(all))
    }

    /// New inputs that reach further go to a corpus in the target folder, where the next run finds
    /// them; those in the repository are only read. Longer ones have a corpus of their own: cut
    /// short they would say little.
    fn run_phase(&self, programs: &Path, phase: &Phase, time: Duration) -> Result<Outcome> {
        let Phase { bytes, suffix, .. } = phase;
        let made = |kind: &str, suffix: &str| -> Result<PathBuf> {
            let folder = folder().join(kind).join(format!("{}{suffix}", self.name));
            fs::create_dir_all(&folder)?;
            Ok(folder)
        };
        let (corpus, artifacts) = (made("corpus", suffix)?, made("artifacts", "")?);
        let log = made("logs", suffix)?.join("log.txt");
        let output = File::create(&log)?;
        let mut command = program(programs.join(self.name));
        // The first is written to, too.
        command.arg(&corpus).arg(made("corpus", "")?);
        let seeds = self.seeds(*bytes)?;
        if !seeds.is_empty() {
            let names: Vec<_> = seeds.iter().map(|(file, _)| file.display().to_string()).collect();
            command.arg(format!("-seed_inputs={}", names.join(",")));
        }
        let longest = seeds.iter().map(|(_, bytes)| *bytes).fold(*bytes, u64::max);
        let dictionary = root().join("fuzz/dictionaries").join(format!("{}.txt", self.name));
        if dictionary.is_file() {
            command.arg(format!("-dict={}", dictionary.display()));
        }
        let seconds = time.as_secs().max(1);
        let status = command
            .args([format!("-max_total_time={seconds}"), format!("-max_len={longest}")])
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
        let said =
            text.lines().find(|line| line.contains("panicked at") || line.contains("ERROR:"));
        let said = said.unwrap_or("no message");
        Ok(Err(format!(
            "{status}: {said}; the input is in {}, all in {}",
            artifacts.display(),
            log.display()
        )))
    }

    /// Kept inputs, and fixtures of at most this many bytes.
    fn seeds(&self, bytes: u64) -> Result<Vec<(PathBuf, u64)>> {
        let kept = under(&root().join("fuzz/corpus").join(self.name))?;
        let fixtures = self.fixtures.map(|name| under(&root().join("tests/fixtures").join(name)));
        let fixtures = fixtures.transpose()?.unwrap_or_default();
        let sized = |file: PathBuf| -> Result<(PathBuf, u64)> {
            let length = fs::metadata(&file)?.len();
            Ok((file, length))
        };
        let mut seeds = kept.into_iter().map(sized).collect::<Result<Vec<_>>>()?;
        let fixtures = fixtures.into_iter().map(sized).collect::<Result<Vec<_>>>()?;
        seeds.extend(fixtures.into_iter().filter(|(_, length)| *length <= bytes));
        Ok(seeds)
    }
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
