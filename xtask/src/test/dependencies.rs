//! Licences, sources and versions of all dependencies, checked by `cargo deny`.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use super::fuzz;
use super::stage::Stage;
use crate::bindgen;
use crate::cache;
use crate::shell::{cargo, find_program, program, run, say, target};

const TOOL: &str = "cargo-deny";
const VERSION: &str = "0.20.2";

/// Workspaces with a lock file that a build or a test uses.
const MANIFESTS: [&str; 3] = ["Cargo.toml", fuzz::MANIFEST, bindgen::MANIFEST];

/// The stage.
pub(super) fn stage() -> Stage {
    Stage::new("dependencies", |_| {
        let tool = tool()?;
        MANIFESTS.into_iter().try_for_each(|manifest| {
            let mut command = program(&tool);
            command.args(["--config", "deny.toml", "--locked", "--manifest-path", manifest]);
            // The advisories are a repository of their own, which not every machine reaches.
            run(command.args(["check", "bans", "licenses", "sources"]))
        })
    })
}

/// An installed cargo-deny, or one compiled into the user's cache folder.
fn tool() -> Result<PathBuf> {
    if let Some(installed) = find_program(TOOL) {
        return Ok(installed);
    }
    let folder = cache::folder().join("tools").join(format!("{TOOL}-{VERSION}"));
    let tool = folder.join("bin").join(format!("{TOOL}{}", std::env::consts::EXE_SUFFIX));
    if !tool.is_file() {
        say(&format!("compiling {TOOL} {VERSION} (once; about two minutes)"));
        run(install().arg("--root").arg(&folder))?;
    }
    Ok(tool)
}

fn install() -> Command {
    let mut command = cargo();
    command
        .args(["install", TOOL, "--version", VERSION, "--locked", "--quiet", "--no-track"])
        .arg("--no-default-features")
        .env("CARGO_TARGET_DIR", target().join("tools"))
        // It runs for seconds: what it takes to compile counts more.
        .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1")
        .env("CARGO_PROFILE_RELEASE_LTO", "off")
        .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16");
    command
}
