//! Orders of threads in `--long`, by the model checker loom.

use anyhow::Result;

use super::stage::Stage;
use crate::shell::{cargo, run, target};

/// A workspace of its own.
pub(super) const MANIFEST: &str = "fuzz/loom/Cargo.toml";

/// The stage.
pub(super) fn stage() -> Stage {
    Stage::new("loom", |_| {
        command("clippy", &["--", "-D", "warnings"])?;
        command("run", &[])
    })
}

fn command(what: &str, more: &[&str]) -> Result<()> {
    let mut command = cargo();
    command
        .args([what, "--quiet", "--locked", "--release", "--manifest-path", MANIFEST])
        .args(more)
        .env("CARGO_TARGET_DIR", target().join("loom"));
    run(&mut command)
}
