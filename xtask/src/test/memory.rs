//! Memory checkers of `--long`: stray reads and writes, uninitialised bytes, data races.
//!
//! Four tools, as each sees what others do not: Miri knows Rust's rules for references and threads
//! but few instructions; the sanitizers run every level that the processor has; valgrind follows
//! inline assembly and knows which bytes were ever written, but not AVX-512.

use std::process::Command;

use anyhow::{Context, Result};

use super::stage::Check;
use super::workspace::cargo;
use crate::shell::{self, find_program, program, say, succeeds, target};
use crate::toolchain::{has_source, host, sysroot};

/// Random cases of a test, where one takes an interpreter or an emulator long.
const MIRI_CASES: &str = "4";
const VALGRIND_CASES: &str = "6";
const SANITIZER_CASES: &str = "60";

const NO_MIRI: &str =
    "needs Miri: rustup toolchain install nightly --component miri --component rust-src";
const NO_ADDRESS: &str = "needs a compiler with the runtime of AddressSanitizer, as rustup's on \
                          Linux: rustup toolchain install stable";
const NO_THREAD: &str = "needs a compiler with the runtime of ThreadSanitizer and Rust's source, \
                         as rustup's on Linux: rustup component add rust-src";

/// Tests that set the processor's float mode, which no interpreter or emulator follows.
const FLOAT_MODES: [&str; 4] =
    ["--skip", "every_other_mode_is_noticed", "--skip", "threads_that_flush_subnormals"];

/// Tests of a table too large for an emulator.
const LARGE: [&str; 2] = ["--skip", "few_of_a_gaussian_head_are_candidates"];

/// The definitions, and the team, whose one `unsafe` pointer goes between threads. The levels of
/// the processor are not there for an interpreter.
pub(super) fn miri(check: &mut Check) -> Result<()> {
    let version = |mut cargo: Command| succeeds(cargo.args(["miri", "--version"]));
    let found = [shell::cargo, nightly].into_iter().find(|cargo| version(cargo()));
    check.needs(found.is_some(), NO_MIRI)?;
    for tests in ["setun-ops --lib --tests", "setun-cpu --lib"] {
        let mut command = found.context(NO_MIRI)?();
        command
            .args(["miri", "test", "--locked", "--no-fail-fast", "--package"])
            .args(tests.split(' '))
            .arg("--")
            .args(FLOAT_MODES)
            .env("CARGO_TARGET_DIR", target().join("miri"))
            // Failed cases of proptest are kept in a file, and its seeds come from the system.
            .env("MIRIFLAGS", "-Zmiri-disable-isolation")
            .env("PROPTEST_CASES", MIRI_CASES);
        check.count(&mut command)?;
    }
    Ok(())
}

/// The cargo of rustup's nightly toolchain.
fn nightly() -> Command {
    let mut command = program("rustup");
    command.args(["run", "nightly", "cargo"]);
    // Set by the cargo that runs this tool, for its own compiler.
    command.env_remove("LD_LIBRARY_PATH").env_remove("CARGO").env_remove("RUSTC");
    command
}

/// Every level of this machine, every read and write of compiled code.
pub(super) fn address(check: &mut Check) -> Result<()> {
    check.needs(has_runtime("asan")?, NO_ADDRESS)?;
    check.count(&mut sanitized("address", "--package setun-ops --package setun-cpu --lib --tests")?)
}

/// The team and whole plans with several threads. The standard library is compiled again, or its
/// locks would be unknown and all that they guard a race.
pub(super) fn thread(check: &mut Check) -> Result<()> {
    check.needs(has_runtime("tsan")? && has_source()?, NO_THREAD)?;
    let tests = "-Z build-std --package setun-cpu --lib --test parity";
    check.count(&mut sanitized("thread", tests)?)
}

fn sanitized(sanitizer: &str, tests: &str) -> Result<Command> {
    let host = host()?;
    let mut command = cargo(&format!("test --locked --no-fail-fast --target {host} {tests}"));
    command
        .env("CARGO_TARGET_DIR", target().join(sanitizer))
        // Stable compilers know the flag, and refuse it from builds that are not Rust's own.
        .env("RUSTC_BOOTSTRAP", "1")
        .env("RUSTFLAGS", format!("-Zsanitizer={sanitizer}"))
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env("PROPTEST_CASES", SANITIZER_CASES);
    Ok(command)
}

/// Whether the compiler comes with the runtime library of a sanitizer.
fn has_runtime(sanitizer: &str) -> Result<bool> {
    let folder = sysroot()?.join("lib/rustlib").join(host()?).join("lib");
    let suffix = format!("_rt.{sanitizer}.a");
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(false) };
    Ok(entries.flatten().any(|entry| entry.file_name().to_string_lossy().ends_with(&suffix)))
}

pub(super) fn valgrind(check: &mut Check) -> Result<()> {
    check.needs_packages(find_program("valgrind").is_some(), "valgrind", &["valgrind"])?;
    let levels = levels_of_valgrind();
    say(&format!("levels that valgrind plays: [{levels}]"));
    let mut command = cargo("test --locked --no-fail-fast --package setun-ops --package setun-cpu");
    command
        .args(["--lib", "--tests", "--config", RUNNER, "--"])
        .args(FLOAT_MODES)
        .args(LARGE)
        .env("SETUN_EXPECT_LEVELS", levels)
        .env("PROPTEST_CASES", VALGRIND_CASES);
    check.count(&mut command)
}

/// The levels that a program sees under valgrind: those without AVX-512, AVX-VNNI.
fn levels_of_valgrind() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        return "avx2";
    }
    if cfg!(target_arch = "aarch64") { "neon" } else { "" }
}

/// The setting of cargo that runs every program under valgrind.
const RUNNER: &str = "target.'cfg(all())'.runner='valgrind --quiet --error-exitcode=9 --leak-check=no \
                      --fair-sched=yes'";
