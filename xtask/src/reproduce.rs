//! Reproducible WebAssembly: a second build in another folder gives the same bytes.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::files::{tracked, under};
use crate::shell::{cargo, in_ci, program, root, run, say, target};
use crate::wasm;

/// Where bindings and modules are, from a root.
const GENERATED: &str = "npm/generated";

/// `cargo xtask reproduce`: builds every variant here and in a copy of the sources that shares no
/// compiled file, and compares each file that a release has. Returns how many are equal.
pub(crate) fn check() -> Result<u64> {
    let variants = wasm::build_variants(&[], in_ci())?;
    let folder = target().join("reproduce");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    // Another name, length and depth, so that a path in a file shows.
    let copy = folder.join("a-second-folder/of-another-depth");
    copy_sources(&copy)?;
    say(&format!("building {} variants in {}", variants.len(), copy.display()));
    let mut build = cargo();
    build.current_dir(&copy).env_remove("CARGO_TARGET_DIR").args(["xtask", "build-wasm"]);
    run(&mut build)?;
    let [first, second] = [root(), copy].map(|root| shipped(&root.join(GENERATED)));
    let equal = compare(&first?, &second?)?;
    say(&format!("{equal} files are equal"));
    fs::remove_dir_all(&folder)?;
    Ok(equal)
}

/// The files of the project in a repository of their own, without history.
fn copy_sources(to: &Path) -> Result<()> {
    for path in tracked()? {
        let copy = to.join(&path);
        fs::create_dir_all(copy.parent().context("a file in a folder")?)?;
        fs::copy(root().join(&path), &copy)
            .with_context(|| format!("cannot copy {}", path.display()))?;
    }
    run(program("git").current_dir(to).args(["init", "--quiet"]))
}

/// The modules and scripts below a folder, by their paths in it.
fn shipped(folder: &Path) -> Result<BTreeMap<PathBuf, Vec<u8>>> {
    let files = under(folder)?.into_iter();
    let is_shipped = |path: &PathBuf| path.extension().is_some_and(|it| it == "wasm" || it == "js");
    files
        .filter(is_shipped)
        .map(|path| Ok((path.strip_prefix(folder)?.to_path_buf(), fs::read(&path)?)))
        .collect()
}

fn compare(first: &BTreeMap<PathBuf, Vec<u8>>, second: &BTreeMap<PathBuf, Vec<u8>>) -> Result<u64> {
    ensure!(first.keys().eq(second.keys()), "one build has files that the other lacks");
    ensure!(first.keys().any(|path| path.ends_with("setun_bg.wasm")), "no module was built");
    for ((path, a), b) in first.iter().zip(second.values()) {
        let at = a.iter().zip(b).position(|(a, b)| a != b).unwrap_or(a.len().min(b.len()));
        ensure!(
            a == b,
            "{} differs at byte {at}: {} and {} bytes",
            path.display(),
            a.len(),
            b.len()
        );
    }
    Ok(u64::try_from(first.len())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn builds_are_equal_to_the_byte() {
        let module = |bytes: &[u8]| {
            BTreeMap::from([(PathBuf::from("simd128/setun_bg.wasm"), bytes.to_vec())])
        };
        assert_eq!(compare(&module(&[0, 1]), &module(&[0, 1])).unwrap(), 1);
        let error = compare(&module(&[0, 1, 2]), &module(&[0, 2])).unwrap_err().to_string();
        assert_eq!(error, "simd128/setun_bg.wasm differs at byte 1: 3 and 2 bytes");
        let longer = compare(&module(&[0, 1]), &module(&[0, 1, 2])).unwrap_err().to_string();
        assert!(longer.contains("at byte 2"), "{longer}");
        assert!(compare(&module(&[0]), &BTreeMap::new()).is_err());
        assert!(compare(&BTreeMap::new(), &BTreeMap::new()).is_err(), "nothing was built");
    }
}
