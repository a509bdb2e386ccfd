//! Packages of `PyPI`, which are fetched once into the user's cache folder.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::stage::Stage;
use super::totals::Totals;
use crate::cache;
use crate::shell::{output, program, say, succeeds};

/// Ends without an error where there is an interpreter that the wheels are for, with pip.
const PROBE: &str = "import pip, sys; sys.exit(sys.version_info < (3, 11))";

const NO_PYTHON: &str = "needs Python 3.11 or newer with pip, which fetches packages; on \
                         Debian, as root: apt-get install python3-pip";

/// Whether there is a Python that can fetch them.
pub(super) fn can_be_fetched() -> bool {
    succeeds(program("python3").args(["-c", PROBE]))
}

/// A stage that needs such packages.
pub(super) fn stage(name: &str, work: impl FnOnce(&mut Totals) -> Result<()> + 'static) -> Stage {
    if can_be_fetched() { Stage::new(name, work) } else { Stage::absent(name, NO_PYTHON) }
}

/// The folder of the wheels of a file with their hashes, which is made once for each such file; none
/// where they cannot be had.
pub(super) fn fetched(name: &str, requirements: &Path) -> Result<Option<PathBuf>> {
    let wanted = fs::read_to_string(requirements)?;
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
    let mut pip = program("python3");
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"])
        .args(["--root-user-action", "ignore"])
        .args(["--no-deps", "--only-binary", ":all:", "--require-hashes", "--requirement"]);
    if !succeeds(pip.arg(requirements).arg("--target").arg(&packages)) {
        return Ok(None);
    }
    fs::write(note, wanted)?;
    Ok(Some(packages))
}

/// Python with the packages, and without what the user has installed. What it compiles is beside them.
pub(super) fn python(packages: &Path) -> Command {
    let mut python = program("python3");
    python.arg("-s").env("PYTHONPATH", packages);
    python.env("PYTHONPYCACHEPREFIX", packages.join("pycache"));
    python.env_remove("PYTHONDONTWRITEBYTECODE");
    python
}
