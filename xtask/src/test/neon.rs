//! Kernels of 64-bit ARM, under an emulator of processors with and without their
//! extensions.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::stage::Check;
use crate::shell::{find_program, run, say, target};
use crate::toolchain::Toolchain;

const TARGET: &str = "aarch64-unknown-linux-gnu";

/// Processors of the emulator, and the levels that each must have. The last has all, so it runs all.
const PROCESSORS: [(&str, &str); 3] = [
    ("cortex-a53", "neon"),
    ("neoverse-n1", "neon-dotprod,neon"),
    ("max", "neon-i8mm,neon-dotprod,neon"),
];

/// The tests of parity, and the one that compares a processor's levels with those that are expected.
const PARITY: &[&str] = &["--test", "kernels", "--test", "parity"];
const DETECTION: &[&str] = &["--test", "kernels", "--", "--exact", "levels_are_those_expected"];

/// Paths that the other tests of the crate depend on.
pub(super) const INPUTS: [&str; 3] =
    ["crates/setun-cpu/", "crates/setun-parity/", "xtask/src/test/neon.rs"];

/// Random cases of each test: where they are played they take ten times as long.
const CASES: &str = "8";

const EMULATOR: &str = "qemu-aarch64";
const LINKER: &str = "aarch64-linux-gnu-gcc";
const SYSTEM_ROOT: &str = "/usr/aarch64-linux-gnu";
const DEBIAN_PACKAGES: [&str; 3] = ["qemu-user", "gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross"];

/// Each processor has its levels, and all of them are compared with the reference.
pub(super) fn test(check: &mut Check) -> Result<()> {
    let toolchain = toolchain(check)?;
    if toolchain == Toolchain::Own {
        // What the stage of the same name does for this machine's own architecture.
        let mut lints = toolchain.cargo("clippy", TARGET, "");
        lints.args(["--package", "setun-cpu", "--lib", "--features", "testing", "--quiet"]);
        run(lints.env("CARGO_TARGET_DIR", folder(toolchain)).args(["--", "-D", "warnings"]))?;
    }
    PROCESSORS.into_iter().try_for_each(|(processor, levels)| {
        let tests = if processor == "max" { PARITY } else { DETECTION };
        check.count(played(toolchain, processor, levels).args(tests))
    })
}

/// Every test of the crate, each processor with its highest level.
pub(super) fn test_all(check: &mut Check) -> Result<()> {
    let toolchain = toolchain(check)?;
    PROCESSORS.into_iter().try_for_each(|(processor, levels)| {
        let highest = levels.split(',').next().unwrap_or_default();
        let mut command = played(toolchain, processor, levels);
        check.count(command.args(["--lib", "--tests"]).env("SETUN_TEST_LEVELS", highest))
    })
}

fn toolchain(check: &mut Check) -> Result<Toolchain> {
    let has_programs = [EMULATOR, LINKER].into_iter().all(|name| find_program(name).is_some());
    let is_ready = has_programs && Path::new(SYSTEM_ROOT).join("include").is_dir();
    check.needs_packages(is_ready, "qemu-aarch64 and a cross compiler", &DEBIAN_PACKAGES)?;
    let toolchain = Toolchain::required(TARGET)?;
    say(&format!("compiling for {TARGET} ({})", toolchain.describe()));
    Ok(toolchain)
}

/// Tests of the crate on a processor of the emulator.
fn played(toolchain: Toolchain, processor: &str, levels: &str) -> Command {
    say(&format!("{processor} as {EMULATOR} plays it: {levels}"));
    let runner = format!("{EMULATOR} -L {SYSTEM_ROOT} -cpu {processor}");
    let mut command = toolchain.cargo("test", TARGET, "std,panic_unwind,test");
    command
        .args(["--package", "setun-cpu", "--no-fail-fast"])
        .env("CARGO_TARGET_DIR", folder(toolchain))
        .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", LINKER)
        .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", &runner)
        .env("SETUN_EXPECT_LEVELS", levels)
        .env("PROPTEST_CASES", CASES);
    command
}

/// Where it is built: apart from the tests of this machine, beside which it runs.
fn folder(toolchain: Toolchain) -> PathBuf {
    match toolchain {
        Toolchain::Own => target().join("neon"),
        Toolchain::OwnFromSource | Toolchain::Debian => toolchain.folder(),
    }
}
