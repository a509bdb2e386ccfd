//! The files of the project, as git sees them.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::shell::{output, program, root};

/// Files that git tracks or would track, relative to the root, sorted; of deleted ones nothing.
pub(crate) fn tracked() -> Result<Vec<PathBuf>> {
    let arguments = ["ls-files", "--cached", "--others", "--exclude-standard", "-z"];
    let listing = output(program("git").args(arguments))
        .context("the files of the project are found with git")?;
    let mut files: Vec<PathBuf> = listing
        .split('\0')
        .filter(|path| !path.is_empty() && root().join(path).is_file())
        .map(PathBuf::from)
        .collect();
    files.sort();
    files.dedup();
    Ok(files)
}

/// Every file under `folder`, sorted; nothing if there is no such folder.
pub(crate) fn under(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        if !folder.is_dir() {
            continue;
        }
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.is_dir() { folders.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    Ok(found)
}

/// The text of a file of the project, by its path from the root.
pub(crate) fn read(path: impl AsRef<Path>) -> Result<String> {
    let path = path.as_ref();
    fs::read_to_string(root().join(path)).with_context(|| format!("cannot read {}", path.display()))
}

/// Writes `text` unless the file holds it already, so that its time of change stays true.
pub(crate) fn write_if_changed(path: &Path, text: &[u8]) -> Result<()> {
    if fs::read(path).is_ok_and(|found| found == text) {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}
