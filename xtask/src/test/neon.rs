//! Kernels of 64-bit ARM, under an emulator of processors with and without their
//! extensions.

use std::path::Path;

use anyhow::Result;

use super::stage::{Stage, count};
use super::totals::Totals;
use crate::machine::{install_packages, may_install};
use crate::shell::{find_program, run, say, target};
use crate::toolchain::Toolchain;

const TARGET: &str = "aarch64-unknown-linux-gnu";

/// Processors of the emulator, the levels that each must have, and that which it runs for all.
const PROCESSORS: [(&str, &str, &str); 3] = [
    ("cortex-a53", "neon", "neon"),
    ("neoverse-n1", "neon-dotprod,neon", "neon-dotprod"),
    ("max", "neon-i8mm,neon-dotprod,neon", "neon-i8mm"),
];

/// Random cases of each test: where they are played they take ten times as long.
const CASES: &str = "8";

const EMULATOR: &str = "qemu-aarch64";
const LINKER: &str = "aarch64-linux-gnu-gcc";
const SYSTEM_ROOT: &str = "/usr/aarch64-linux-gnu";
const DEBIAN_PACKAGES: [&str; 3] = ["qemu-user", "gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross"];

const NO_EMULATOR: &str = "needs qemu-aarch64 and a cross compiler; on Debian, as root: apt-get \
                           install qemu-user gcc-aarch64-linux-gnu libc6-dev-arm64-cross";

/// The stage; none on a machine whose own processor runs these kernels in the stage `crates`.
pub(super) fn stage() -> Option<Stage> {
    if std::env::consts::ARCH == "aarch64" {
        return None;
    }
    Some(if is_ready() || may_install() {
        Stage::new("neon", test)
    } else {
        Stage::absent("neon", NO_EMULATOR)
    })
}

fn is_ready() -> bool {
    let programs = [EMULATOR, LINKER].into_iter().all(|name| find_program(name).is_some());
    programs && Path::new(SYSTEM_ROOT).join("include").is_dir()
}

fn test(totals: &mut Totals) -> Result<()> {
    if !is_ready() {
        install_packages(&DEBIAN_PACKAGES)?;
    }
    let toolchain = Toolchain::required(TARGET)?;
    say(&format!("compiling for {TARGET} ({})", toolchain.describe()));
    if toolchain == Toolchain::Own {
        lints(toolchain)?;
    }
    for (processor, levels, tested) in PROCESSORS {
        say(&format!("{processor} as {EMULATOR} plays it: {tested} of {levels}"));
        let runner = format!("{EMULATOR} -L {SYSTEM_ROOT} -cpu {processor}");
        let mut command = toolchain.cargo("test", TARGET, "std,panic_unwind,test");
        command
            .args(["--package", "setun-cpu", "--no-fail-fast", "--lib", "--tests"])
            .env("CARGO_TARGET_DIR", folder(toolchain))
            .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", LINKER)
            .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", &runner)
            .env("SETUN_EXPECT_LEVELS", levels)
            .env("SETUN_TEST_LEVELS", tested)
            .env("PROPTEST_CASES", CASES);
        count(&mut command, totals)?;
    }
    Ok(())
}

/// What the stage of the same name does for this machine's own architecture.
fn lints(toolchain: Toolchain) -> Result<()> {
    let mut command = toolchain.cargo("clippy", TARGET, "");
    command.args(["--package", "setun-cpu", "--lib", "--features", "testing", "--quiet"]);
    run(command.env("CARGO_TARGET_DIR", folder(toolchain)).args(["--", "-D", "warnings"]))
}

/// Where it is built: apart from the tests of this machine, beside which it runs.
fn folder(toolchain: Toolchain) -> std::path::PathBuf {
    match toolchain {
        Toolchain::Own => target().join("neon"),
        Toolchain::OwnFromSource | Toolchain::Debian => toolchain.folder(),
    }
}
