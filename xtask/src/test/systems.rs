//! GPU interfaces of other systems: compiled for them, which needs no linker,
//! and run nowhere.

use anyhow::Result;

use super::stage::Stage;
use crate::shell::{run, say, target};
use crate::toolchain::Toolchain;

/// Targets with the features of `setun-gpu` that are theirs.
const SYSTEMS: [(&str, &str); 2] =
    [("x86_64-pc-windows-gnu", "dx12"), ("aarch64-apple-darwin", "metal")];

/// The stage.
pub(super) fn stage() -> Stage {
    Stage::new("systems", |_| SYSTEMS.into_iter().try_for_each(check))
}

fn check((system, features): (&str, &str)) -> Result<()> {
    let toolchain = Toolchain::required(system)?;
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
