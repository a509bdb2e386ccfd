//! Packages of `PyPI`, which are fetched once into the user's cache folder.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::stage::Check;
use crate::cache;
use crate::shell::{output, program, root, say, succeeds};

/// Ends without an error where there is an interpreter that the wheels are for, with pip.
const PROBE: &str = "import pip, sys; sys.exit(sys.version_info < (3, 11))";
const PYTHON: &str = "Python 3.11 or newer with pip, which fetches packages";

/// Whether there is a Python that can fetch them.
pub(super) fn can_be_fetched() -> bool {
    succeeds(program("python3").args(["-c", PROBE]))
}

/// Goes on only where a stage that needs them can fetch them.
pub(super) fn need(check: &mut Check) -> Result<()> {
    check.needs_packages(can_be_fetched(), PYTHON, &["python3-pip"])
}

/// The folder of the wheels that a stage needs. Where they cannot be had, its tests are skipped: their number, and what
/// the wheels are.
pub(super) fn of_stage(
    check: &mut Check,
    requirements: &str,
    (tests, what): (usize, &str),
) -> Result<Option<PathBuf>> {
    need(check)?;
    let packages = fetched(check.stage, requirements)?;
    if packages.is_none() {
        check.skip(tests, &format!("{what} cannot be had from PyPI"))?;
    }
    Ok(packages)
}

/// The folder of the wheels of a file with their hashes, which is made once for each such file; none
/// where they cannot be had.
pub(super) fn fetched(name: &str, requirements: &str) -> Result<Option<PathBuf>> {
    let requirements = root().join(requirements);
    let wanted = fs::read_to_string(&requirements)?;
    let version = output(program("python3").args(["-c", "import sys; print(sys.version)"]))?;
    let folder = cache::folder().join(name);
    fs::create_dir_all(&folder)?;
    let lock = File::create(folder.join("lock"))?;
    lock.lock()?; // other checkouts have the same folder
    let packages = folder.join(version.split(' ').next().unwrap_or_default());
    let note = packages.join("requirements.txt");
    if fs::read_to_string(&note).is_ok_and(|found| found == wanted) {
        return Ok(Some(packages));
    }
    say(&format!("fetching Python packages from PyPI: {name}"));
    if packages.exists() {
        fs::remove_dir_all(&packages)?;
    }
    let mut pip = pip_install();
    pip.args(["--no-compile", "--no-deps", "--only-binary", ":all:", "--require-hashes"]);
    pip.arg("--requirement").arg(requirements).arg("--target").arg(&packages);
    if !succeeds(&mut pip) {
        return Ok(None);
    }
    fs::write(note, wanted)?;
    Ok(Some(packages))
}

pub(super) fn pip_install() -> Command {
    let mut pip = program("python3");
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
    pip.args(["--root-user-action", "ignore"]);
    pip
}

/// Python with the packages, and without what the user has installed. What it compiles is beside them.
pub(super) fn python(packages: &Path) -> Command {
    let mut python = program("python3");
    python.arg("-s").env("PYTHONPATH", packages);
    python.env("PYTHONPYCACHEPREFIX", packages.join("pycache"));
    python.env_remove("PYTHONDONTWRITEBYTECODE");
    python
}
