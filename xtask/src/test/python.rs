//! The Python package: its wheel, types, and tests with Ray.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::stage::{Stage, count, skip};
use super::totals::Totals;
use super::wheels::{self, python};
use crate::shell::{built_with_tests, program, root, run, target};

/// A model with a chat template, as the stage `clients` makes it.
const MAKE_MODEL: [&str; 2] =
    ["crates/setun-serve/tests/clients/make_model.py", "tests/fixtures/golden/real-tinystories-1m"];

const INPUTS: [&str; 5] = [
    "python/",
    "crates/setun-python/",
    "crates/setun/src/",
    "crates/setun-serve/tests/clients/make_model.py",
    "xtask/src/test/python.rs",
];

/// The stage.
pub(super) fn stage() -> Stage {
    wheels::stage("python", test).for_changes_of(&INPUTS)
}

fn test(totals: &mut Totals) -> Result<()> {
    let command = built_with_tests()?.join("setun");
    let Some(packages) = wheels::fetched("python", &root().join("python/tests/requirements.txt"))?
    else {
        // The types and the tests.
        return skip(2, "what tests the Python package cannot be had from PyPI", totals);
    };
    let folder = target().join("python");
    let site = install(&build(&packages, &folder)?, &folder)?;
    let mut types = python(&packages);
    types.args(["-m", "mypy", "--strict", "--cache-dir"]).arg(folder.join("mypy"));
    run(types.arg("python/src"))?;
    totals.passed += 1;

    let model = folder.join("model");
    run(program("python3").args(MAKE_MODEL.map(|path| root().join(path))).arg(&model))?;
    let scripts = root().join("python/tests"); // the workers of Ray import them, too
    let mut tests = python(&packages);
    tests.env("PYTHONPATH", std::env::join_paths([&site, &packages, &scripts])?);
    tests.args(["-m", "pytest", "--quiet", "-p", "no:cacheprovider", "--color", "no"]);
    tests.env("SETUN_COMMAND", command).env("SETUN_CHAT_MODEL", model);
    count(tests.arg(&scripts), totals)
}

/// Builds the wheel by maturin.
fn build(packages: &Path, folder: &Path) -> Result<PathBuf> {
    let wheels = folder.join("wheels");
    if wheels.exists() {
        fs::remove_dir_all(&wheels)?; // those of other versions
    }
    let mut maturin = program(packages.join("bin/maturin"));
    maturin.current_dir(root().join("python"));
    run(maturin.args(["build", "--quiet", "--profile", "dev", "--out"]).arg(&wheels))?;
    let built = fs::read_dir(&wheels)?.next().context("maturin has built no wheel")??;
    Ok(built.path())
}

/// Installs the wheel alone into a folder.
fn install(wheel: &Path, folder: &Path) -> Result<PathBuf> {
    let site = folder.join("site");
    let mut pip: Command = program("python3");
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]);
    pip.args(["--root-user-action", "ignore", "--no-index", "--upgrade", "--target"]).arg(&site);
    run(pip.arg(wheel))?;
    if !site.join("setun/py.typed").is_file() {
        bail!("the wheel has no mark that its types are checked: setun/py.typed");
    }
    Ok(site)
}
