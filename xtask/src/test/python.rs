//! The Python package: its wheel, types, and tests with Ray.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use super::clients::make_model;
use super::stage::Check;
use super::wheels::{self, pip_install, python};
use crate::shell::{built_with_tests, program, root, run, target};

pub(super) const INPUTS: [&str; 5] = [
    "python/",
    "crates/setun-python/",
    "crates/setun/src/",
    "crates/setun-serve/tests/clients/make_model.py",
    "xtask/src/test/python.rs",
];

/// Wheels of the types and the tests.
const REQUIREMENTS: &str = "python/tests/requirements.txt";
const TESTS: (usize, &str) = (2, "what tests the Python package");

pub(super) fn test(check: &mut Check) -> Result<()> {
    let Some(packages) = wheels::of_stage(check, REQUIREMENTS, TESTS)? else { return Ok(()) };
    let command = built_with_tests()?.join("setun");
    let folder = target().join("python");
    let site = install(&build(&packages, &folder)?, &folder)?;
    let mut types = python(&packages);
    types.args(["-m", "mypy", "--strict", "--cache-dir"]).arg(folder.join("mypy"));
    check.pass(types.arg("python/src"))?;

    let model = folder.join("model");
    make_model(program("python3"), &model)?;
    let scripts = root().join("python/tests"); // the workers of Ray import them, too
    let mut tests = python(&packages);
    tests.env("PYTHONPATH", std::env::join_paths([&site, &packages, &scripts])?);
    tests.args(["-m", "pytest", "--quiet", "-p", "no:cacheprovider", "--color", "no"]);
    tests.env("SETUN_COMMAND", command).env("SETUN_CHAT_MODEL", model);
    check.count(tests.arg(&scripts))
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
    let mut pip = pip_install();
    pip.args(["--no-deps", "--no-index", "--upgrade", "--target"]).arg(&site);
    run(pip.arg(wheel))?;
    let has_types = site.join("setun/py.typed").is_file();
    ensure!(has_types, "the wheel has no mark that its types are checked: setun/py.typed");
    Ok(site)
}
