//! GPU interfaces of other systems: compiled for them, which needs no linker,
//! and run nowhere.

use anyhow::Result;

use super::stage::Stage;
use crate::machine::Missing;
use crate::shell::{run, say, target};
use crate::toolchain::Toolchain;

/// Targets with the features of `setun-gpu` that are theirs.
const SYSTEMS: [(&str, &str); 2] =
    [("x86_64-pc-windows-gnu", "dx12"), ("aarch64-apple-darwin", "metal")];

const NO_TARGET: Missing = Missing {
    what: "a Rust target of another system is not installed and could not be added",
    debian: ADD,
    fedora: ADD,
    macos: ADD,
    windows: ADD,
};
const ADD: &str = "rustup target add x86_64-pc-windows-gnu aarch64-apple-darwin";

/// The stage.
pub(super) fn stage() -> Stage {
    Stage::new("systems", |_| SYSTEMS.into_iter().try_for_each(check))
}

fn check((system, features): (&str, &str)) -> Result<()> {
    let toolchain = Toolchain::for_target(system)?.ok_or_else(|| NO_TARGET.error())?;
    say(&format!("setun-gpu for {system} ({})", toolchain.describe()));
    // Debian's second compiler has no lints.
    let subcommand = if toolchain == Toolchain::Own { "clippy" } else { "check" };
    let mut command = toolchain.cargo(subcommand, system, "std,panic_unwind");
    command
        .args(["--quiet", "--package", "setun-gpu", "--lib", "--features", features])
        .env("CARGO_TARGET_DIR", target().join("systems"));
    if toolchain == Toolchain::Own {
        command.args(["--", "-D", "warnings"]);
    }
    run(&mut command)
}
