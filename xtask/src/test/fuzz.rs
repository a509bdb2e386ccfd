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
use crate::machine::{install_packages, may_install};
use crate::parallel::parallel_map;
use crate::shell::{cargo, find_program, program, root, run, say, target};
use crate::toolchain::host;

/// A workspace of its own.
pub(super) const MANIFEST: &str = "fuzz/Cargo.toml";
const DEBIAN_PACKAGES: [&str; 1] = ["g++"];
const NOT_HERE: &str = "libFuzzer is here for Linux and macOS";
const NO_COMPILER: &str = "needs a C++ compiler; on Debian, as root: apt-get install g++";

const SHORT: Duration = Duration::from_secs(8);
const LONG_MINUTES: f64 = 30.0;

/// Longest input.
const MAX_BYTES: usize = 100_000;

/// Seconds after which an input hangs.
const HANG: u32 = 30;

/// A fuzz target, and the fixtures that are its seeds beside those kept for it.
struct Target {
    name: &'static str,
    fixtures: Option<&'static str>,
}

const TARGETS: [Target; 8] = [
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

/// Flags of the compiler: to count which edges of the control flow an input takes, and to show
/// what is compared with what.
const FLAGS: [&str; 6] = [
    "--cfg=fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
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
    run(command("clippy", &host, long).args(["--", "-D", "warnings"]))?;
    run(&mut command("build", &host, long))?;
    let programs = folder().join(&host).join("release");
    let more: &[Target] = if long { &LONG_TARGETS } else { &[] };
    let targets: Vec<_> = TARGETS.iter().chain(more).collect();
    say(&format!("{} targets for {} s each", targets.len(), time.as_secs()));
    let ran = parallel_map(&targets, |target| {
        let outcome = target.run(&programs, time).with_context(|| target.name)?;
        Ok((target.name, outcome))
    })?;
    for (name, outcome) in &ran {
        let (Ok(line) | Err(line)) = outcome;
        println!("fuzz target {name}: {line}");
        *(if outcome.is_ok() { &mut totals.passed } else { &mut totals.failed }) += 1;
    }
    ensure!(ran.iter().all(|(_, outcome)| outcome.is_ok()), "a target failed, see above");
    Ok(())
}

/// Everything that fuzzing makes, the inputs that it found among them.
fn folder() -> PathBuf {
    target().join("fuzz")
}

fn command(what: &str, host: &str, long: bool) -> Command {
    let mut command = cargo();
    command
        .args([what, "--quiet", "--locked", "--release", "--manifest-path", MANIFEST])
        // With a target named, build scripts and macros are compiled without the flags.
        .args(["--target", host])
        .arg(if long { "--features=hub,text" } else { "--features=hub" })
        .env("CARGO_TARGET_DIR", folder())
        .env("RUSTFLAGS", FLAGS.join(" "))
        .env_remove("CARGO_ENCODED_RUSTFLAGS");
    command
}

/// libFuzzer's last line, with the inputs tried, the edges reached and the inputs kept; or what failed.
type Outcome = Result<String, String>;

impl Target {
    /// New inputs that reach further go to a corpus in the target folder, where the next run finds
    /// them; those in the repository are only read.
    fn run(&self, programs: &Path, time: Duration) -> Result<Outcome> {
        let made = |kind: &str| -> Result<PathBuf> {
            let folder = folder().join(kind).join(self.name);
            fs::create_dir_all(&folder)?;
            Ok(folder)
        };
        let (corpus, artifacts) = (made("corpus")?, made("artifacts")?);
        let log = made("logs")?.join("log.txt");
        let output = File::create(&log)?;
        let mut command = program(programs.join(self.name));
        command.arg(&corpus).args(self.seeds());
        let dictionary = root().join("fuzz/dictionaries").join(format!("{}.txt", self.name));
        if dictionary.is_file() {
            command.arg(format!("-dict={}", dictionary.display()));
        }
        let seconds = time.as_secs().max(1);
        let status = command
            .args([format!("-max_total_time={seconds}"), format!("-max_len={MAX_BYTES}")])
            .arg(format!("-timeout={HANG}"))
            .arg(format!("-artifact_prefix={}/", artifacts.display()))
            // One thread, so that an input always takes the same way.
            .env("RAYON_NUM_THREADS", "1")
            .stdout(output.try_clone()?)
            .stderr(output)
            .status()?;
        let text = String::from_utf8_lossy(&fs::read(&log)?).into_owned();
        if status.success() {
            let last = text.lines().rfind(|line| line.contains(" cov: "));
            return Ok(Ok(last.unwrap_or("no progress").to_owned()));
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

    fn seeds(&self) -> Vec<PathBuf> {
        let kept = Some(root().join("fuzz/corpus").join(self.name));
        let fixtures = self.fixtures.map(|name| root().join("tests/fixtures").join(name));
        kept.into_iter().chain(fixtures).filter(|folder| folder.is_dir()).collect()
    }
}
