//! Compiled dependencies in the user's cache folder, so that a clean checkout compiles the project alone.
//!
//! A unit of cargo is a package compiled in one way; its hash is in the names of all its files. Units of
//! packages from a registry, or of the standard library's source, say nothing of the checkout: cargo
//! takes them in another one as they are, after it has compared compiler, version, features, profile
//! and flags with their fingerprint. It does not compare what a unit was compiled against: a macro
//! that holds the path of its target folder differs from that of another folder, with the same hash in
//! its name. So all kept units come from one folder and from those that began as copies of it.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, Result};

use crate::files::under;
use crate::shell::{say, target};

/// Beginnings of the names of this repository's packages.
const OWN: [&str; 2] = ["setun", "xtask"];

/// Folders between the target folder and a profile: `wasm/own/lints/TARGET/debug`.
const MAX_DEPTH: usize = 6;

/// Where a profile's folder has what.
const FINGERPRINTS: &str = ".fingerprint";
const SCRIPTS: &str = "build";
const ARTEFACTS: &str = "deps";

/// `cargo xtask save-dependencies`: copies the units in the target folder that `to` lacks. Where a unit
/// differs from the one that `to` has, the units of the target folder replace all that is in `to`.
pub(crate) fn save(to: &Path) -> Result<()> {
    let copied = copy_units(&target(), to)?;
    say(&format!("{copied} files of compiled dependencies are new in {}", to.display()));
    Ok(())
}

fn copy_units(target: &Path, to: &Path) -> Result<usize> {
    let mut files = vec![];
    for folder in profiles(target, MAX_DEPTH) {
        for file in unit_files(&folder)? {
            let copy = to.join(file.strip_prefix(target)?);
            files.push((file, copy));
        }
    }
    if files.iter().any(|(file, copy)| copy.exists() && time(file) != time(copy)) {
        fs::remove_dir_all(to)?;
    }
    files.retain(|(_, copy)| !copy.exists());
    files.iter().try_for_each(|(file, copy)| copy_with_time(file, copy))?;
    Ok(files.len())
}

fn time(file: &Path) -> Option<SystemTime> {
    fs::metadata(file).and_then(|data| data.modified()).ok()
}

/// Folders of a profile, `debug` or `TARGET/release`, at most so deep.
fn profiles(folder: &Path, depth: usize) -> Vec<PathBuf> {
    if folder.join(FINGERPRINTS).is_dir() {
        return vec![folder.to_path_buf()];
    }
    let entries = folder.read_dir().into_iter().flatten().flatten();
    let folders = entries.map(|entry| entry.path()).filter(|path| path.is_dir());
    if depth == 0 { vec![] } else { folders.flat_map(|path| profiles(&path, depth - 1)).collect() }
}

/// The files of all units of other packages in a profile's folder.
fn unit_files(profile: &Path) -> Result<Vec<PathBuf>> {
    let mut files = vec![];
    let mut hashes = BTreeSet::new();
    for entry in profile.join(FINGERPRINTS).read_dir()? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let Some((package, hash)) = name.rsplit_once('-') else { continue };
        let fingerprint = under(&profile.join(FINGERPRINTS).join(&name))?;
        if OWN.iter().any(|own| package.starts_with(own)) || !is_whole(&fingerprint) {
            continue;
        }
        files.extend(fingerprint);
        files.extend(under(&profile.join(SCRIPTS).join(&name))?);
        hashes.insert(hash.to_owned());
    }
    let is_of_unit = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let stem = name.split_once('.').map_or(&*name, |(stem, _)| stem);
        stem.rsplit_once('-').is_some_and(|(_, hash)| hashes.contains(hash))
    };
    files.extend(under(&profile.join(ARTEFACTS))?.into_iter().filter(is_of_unit));
    Ok(files)
}

/// Cargo describes a unit in a JSON file when it has been compiled.
fn is_whole(fingerprint: &[PathBuf]) -> bool {
    fingerprint.iter().any(|file| file.extension().is_some_and(|extension| extension == "json"))
}

/// Cargo compares the times of files: a copy has that of its original. It gets its name when it is whole.
fn copy_with_time(from: &Path, to: &Path) -> Result<()> {
    let folder = to.parent().context("a file in a folder")?;
    fs::create_dir_all(folder)?;
    let mut part = to.as_os_str().to_owned();
    part.push(".part");
    fs::copy(from, &part).with_context(|| format!("cannot copy to {}", to.display()))?;
    let modified = fs::metadata(from)?.modified()?;
    File::options().write(true).open(&part)?.set_modified(modified)?;
    fs::rename(&part, to)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_of_other_packages_are_copied_whole() {
        let (target, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let files = [
            ("debug/.fingerprint/serde-0123/lib-serde.json", true),
            ("debug/.fingerprint/setun-ops-4567/lib-setun_ops.json", false),
            ("debug/.fingerprint/uuid-dead/invoked.timestamp", false),
            ("debug/build/serde-0123/out/generated.rs", true),
            ("debug/deps/libserde-0123.rlib", true),
            ("debug/deps/serde-0123.d", true),
            ("debug/deps/libsetun_ops-4567.rlib", false),
            ("debug/deps/libuuid-dead.rmeta", false),
            ("debug/deps/engine-89ab", false),
            ("wasm/own/lints/wasm32/wasm/.fingerprint/half-cdef/lib-half.json", true),
            ("wasm/own/lints/wasm32/wasm/deps/libhalf-cdef.rmeta", true),
            ("xtask/stamps/npm-web", false),
        ];
        for (name, _) in files {
            write(&target.path().join(name));
        }
        assert_eq!(copy_units(target.path(), to.path()).unwrap(), 6);
        for (name, expected) in files {
            let copy = to.path().join(name);
            assert_eq!(copy.exists(), expected, "{name}");
            if expected {
                assert_eq!(time(&copy), time(&target.path().join(name)), "{name}");
            }
        }
        assert_eq!(copy_units(target.path(), to.path()).unwrap(), 0, "all are there");
    }

    #[test]
    fn units_of_two_folders_are_not_mixed() {
        let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let to = tempfile::tempdir().unwrap();
        let (serde, half) =
            ("debug/.fingerprint/serde-0123/lib.json", "debug/.fingerprint/half-4567/lib.json");
        write(&first.path().join(serde));
        write(&second.path().join(half));
        assert_eq!(copy_units(first.path(), to.path()).unwrap(), 1);
        assert_eq!(copy_units(second.path(), to.path()).unwrap(), 1);
        assert!(to.path().join(serde).exists(), "nothing says that they are of two folders");

        let other = second.path().join(serde);
        write(&other);
        let later = time(&other).unwrap() + std::time::Duration::from_secs(1);
        File::options().write(true).open(&other).unwrap().set_modified(later).unwrap();
        fs::remove_file(second.path().join(half)).unwrap();
        assert_eq!(copy_units(second.path(), to.path()).unwrap(), 1);
        assert_eq!(time(&to.path().join(serde)), Some(later));
        assert!(!to.path().join(half).exists(), "the units of the other folder are gone");
    }

    fn write(file: &Path) {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, "compiled").unwrap();
    }
}
