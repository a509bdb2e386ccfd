//! Memory checkers of `--long`: stray reads and writes, uninitialised bytes, data races.
//!
//! Four tools, as each sees what others do not: Miri knows Rust's rules for references and threads
//! but few instructions; the sanitizers run every level that the processor has; valgrind follows
//! inline assembly and knows which bytes were ever written, but not AVX-512.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::stage::{Stage, count};
use crate::shell::{cargo, find_program, program, say, succeeds, target};
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
const NO_VALGRIND: &str = "needs valgrind; on Debian, as root: apt-get install valgrind";

/// Tests that set the processor's float mode, which no interpreter or emulator follows.
const FLOAT_MODES: [&str; 4] =
    ["--skip", "every_other_mode_is_noticed", "--skip", "threads_that_flush_subnormals"];

/// Tests of a table too large for an emulator.
const LARGE: [&str; 2] = ["--skip", "few_of_a_gaussian_head_are_candidates"];

/// The stages.
pub(super) fn stages() -> Result<Vec<Stage>> {
    let host = host()?;
    Ok(vec![miri(), address(&host)?, thread(&host)?, valgrind()])
}

/// The definitions, and the team, whose one `unsafe` pointer goes between threads. The levels of
/// the processor are not there for an interpreter.
fn miri() -> Stage {
    let version = |mut cargo: Command| succeeds(cargo.args(["miri", "--version"]));
    let found = [cargo, nightly].into_iter().find(|cargo| version(cargo()));
    let Some(cargo) = found else { return Stage::absent("miri", NO_MIRI) };
    Stage::new("miri", move |totals| {
        for tests in [
            ["--package", "setun-ops", "--lib", "--tests"].as_slice(),
            &["--package", "setun-cpu", "--lib"],
        ] {
            let mut command = cargo();
            command
                .args(["miri", "test", "--locked", "--no-fail-fast"])
                .args(tests)
                .arg("--")
                .args(FLOAT_MODES)
                .env("CARGO_TARGET_DIR", target().join("miri"))
                // Failed cases of proptest are kept in a file, and its seeds come from the system.
                .env("MIRIFLAGS", "-Zmiri-disable-isolation")
                .env("PROPTEST_CASES", MIRI_CASES);
            count(&mut command, totals)?;
        }
        Ok(())
    })
}

/// The cargo of rustup's nightly toolchain.
fn nightly() -> Command {
    let mut command = program("rustup");
    command
        .args(["run", "nightly", "cargo"])
        // Set by the cargo that runs this tool, for its own compiler.
        .env_remove("LD_LIBRARY_PATH")
        .env_remove("CARGO")
        .env_remove("RUSTC");
    command
}

/// Every level of this machine, every read and write of compiled code.
fn address(host: &str) -> Result<Stage> {
    if !has_runtime(host, "asan")? {
        return Ok(Stage::absent("address", NO_ADDRESS));
    }
    let host = host.to_owned();
    Ok(Stage::new("address", move |totals| {
        let mut command = sanitized(&host, "address");
        command.args(["--package", "setun-ops", "--package", "setun-cpu", "--lib", "--tests"]);
        count(&mut command, totals)
    }))
}

/// The team and whole plans with several threads. The standard library is compiled again, or its
/// locks would be unknown and all that they guard a race.
fn thread(host: &str) -> Result<Stage> {
    if !has_runtime(host, "tsan")? || !has_source()? {
        return Ok(Stage::absent("thread", NO_THREAD));
    }
    let host = host.to_owned();
    Ok(Stage::new("thread", move |totals| {
        let mut command = sanitized(&host, "thread");
        command.args(["-Z", "build-std", "--package", "setun-cpu", "--lib", "--test", "parity"]);
        count(&mut command, totals)
    }))
}

fn sanitized(host: &str, sanitizer: &str) -> Command {
    let mut command = cargo();
    command
        .args(["test", "--locked", "--no-fail-fast", "--target", host])
        .env("CARGO_TARGET_DIR", target().join(sanitizer))
        // Stable compilers know the flag, and refuse it from builds that are not Rust's own.
        .env("RUSTC_BOOTSTRAP", "1")
        .env("RUSTFLAGS", format!("-Zsanitizer={sanitizer}"))
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env("PROPTEST_CASES", SANITIZER_CASES);
    command
}

/// Whether the compiler comes with the runtime library of a sanitizer.
fn has_runtime(host: &str, sanitizer: &str) -> Result<bool> {
    let folder = sysroot()?.join("lib/rustlib").join(host).join("lib");
    let suffix = format!("_rt.{sanitizer}.a");
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(false) };
    Ok(entries.flatten().any(|entry| entry.file_name().to_string_lossy().ends_with(&suffix)))
}

fn valgrind() -> Stage {
    let Some(valgrind) = find_program("valgrind") else {
        return Stage::absent("valgrind", NO_VALGRIND);
    };
    Stage::new("valgrind", move |totals| {
        let levels = levels_of_valgrind();
        say(&format!("levels that valgrind plays: [{levels}]"));
        let mut command = cargo();
        command
            .args(["test", "--locked", "--no-fail-fast"])
            .args(["--package", "setun-ops", "--package", "setun-cpu", "--lib", "--tests"])
            .args(["--config", &runner(&valgrind)])
            .env("SETUN_EXPECT_LEVELS", levels)
            .env("PROPTEST_CASES", VALGRIND_CASES)
            .arg("--")
            .args(FLOAT_MODES)
            .args(LARGE);
        count(&mut command, totals)
    })
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
fn runner(valgrind: &Path) -> String {
    let options = "--quiet --error-exitcode=9 --leak-check=no --fair-sched=yes";
    format!("target.'cfg(all())'.runner='{} {options}'", valgrind.display())
}
