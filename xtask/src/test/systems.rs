//! GPU interfaces of other systems, and kernels for Linux with another C library: compiled for them,
//! which needs no linker, and run nowhere.

use anyhow::Result;

use crate::shell::{run, say, target};
use crate::toolchain::Toolchain;

/// Targets with packages, and the features that are theirs.
const SYSTEMS: [(&str, &str, &str); 3] = [
    ("x86_64-pc-windows-gnu", "setun-gpu", "dx12"),
    ("aarch64-apple-darwin", "setun-gpu", "metal"),
    ("x86_64-unknown-linux-musl", "setun-cpu", ""),
];

/// Whether this stage compiles a package with a feature, for another system.
pub(super) fn compiles(package: &str, feature: &str) -> bool {
    SYSTEMS.iter().any(|(_, known, own)| (*known, *own) == (package, feature))
}

pub(super) fn test() -> Result<()> {
    SYSTEMS.into_iter().try_for_each(check)
}

fn check((system, package, features): (&str, &str, &str)) -> Result<()> {
    let toolchain = Toolchain::required(system)?;
    say(&format!("{package} for {system} ({})", toolchain.describe()));
    // Debian's second compiler has no lints.
    let has_lints = toolchain == Toolchain::Own;
    let subcommand = if has_lints { "clippy" } else { "check" };
    let mut command = toolchain.cargo(subcommand, system, "std,panic_unwind");
    command.args(["--quiet", "--package", package, "--lib", "--features", features]);
    command.args(["--", "-D", "warnings"].iter().filter(|_| has_lints));
    run(command.env("CARGO_TARGET_DIR", target().join("systems")))
}
