//! GPU interfaces of other systems, and kernels for Linux with another C library: compiled for them,
//! which needs no linker, and run nowhere.

use anyhow::Result;

use super::stage::Stage;
use crate::shell::{run, say, target};
use crate::toolchain::Toolchain;

/// Targets with packages, and the features that are theirs.
const SYSTEMS: [(&str, &str, &str); 3] = [
    ("x86_64-pc-windows-gnu", "setun-gpu", "dx12"),
    ("aarch64-apple-darwin", "setun-gpu", "metal"),
    ("x86_64-unknown-linux-musl", "setun-cpu", ""),
];

/// The stage.
pub(super) fn stage() -> Stage {
    Stage::new("systems", |_| SYSTEMS.into_iter().try_for_each(check))
}

fn check((system, package, features): (&str, &str, &str)) -> Result<()> {
    let toolchain = Toolchain::required(system)?;
    say(&format!("{package} for {system} ({})", toolchain.describe()));
    // Debian's second compiler has no lints.
    let subcommand = if toolchain == Toolchain::Own { "clippy" } else { "check" };
    let mut command = toolchain.cargo(subcommand, system, "std,panic_unwind");
    command
        .args(["--quiet", "--package", package, "--lib", "--features", features])
        .env("CARGO_TARGET_DIR", target().join("systems"));
    if toolchain == Toolchain::Own {
        command.args(["--", "-D", "warnings"]);
    }
    run(&mut command)
}
