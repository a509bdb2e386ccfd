//! Packages of the crates that a registry gets: their files and sizes.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::files::tracked;
use crate::metadata::{BATCH, is_published, own_packages};
use crate::shell::{cargo, output, program, root, run, say, target};

/// Every package has these.
const REQUIRED: [&str; 4] = ["Cargo.toml", "LICENSE-APACHE", "LICENSE-MIT", "README.md"];

/// What cargo writes into a package.
const WRITTEN: [&str; 4] = [".cargo_vcs_info.json", "Cargo.lock", "Cargo.toml", "Cargo.toml.orig"];

/// The package that carries the embedded model, and most bytes of it and of each other one.
const WITH_MODEL: &str = "setun";
const MAX_BYTES_WITH_MODEL: u64 = 4_500_000;
const MAX_BYTES: u64 = 500_000;

/// A packed crate.
struct Packed {
    name: String,
    bytes: u64,
    /// Its files, by their paths in the package.
    files: Vec<String>,
    /// Files of its folder that git has.
    known: Vec<String>,
}

/// Packs all published crates and checks them. With `compile` each is also compiled from its
/// package, which takes minutes.
pub(crate) fn check(compile: bool) -> Result<()> {
    let ours = own_packages()?;
    let mut command = cargo();
    // Changes of a developer are packed as they are: a release is made from a clean clone.
    command.args(["package", "--workspace", "--locked", "--quiet", "--allow-dirty"]);
    for package in ours.iter().filter(|package| !is_published(package)) {
        command.args(["--exclude", package["name"].as_str().unwrap_or_default()]);
    }
    let mut batch = cargo();
    // The crates that these need are in no registry before a release, and the stage `sql` compiles both.
    batch.args(["package", "--workspace", "--locked", "--quiet", "--allow-dirty", "--no-verify"]);
    batch.args(["--exclude-lockfile", "--manifest-path", BATCH, "--target-dir"]).arg(target());
    if !compile {
        command.arg("--no-verify");
    }
    run(&mut command)?;
    run(&mut batch)?;
    let known = tracked()?;
    let mut findings = vec![];
    for package in ours.iter().filter(|package| is_published(package)) {
        let packed = Packed::read(package, &known)?;
        say(&format!("{}: {} files, {} bytes", packed.name, packed.files.len(), packed.bytes));
        findings.extend(packed.findings());
    }
    if !findings.is_empty() {
        bail!("packages of crates:\n{}", findings.join("\n"));
    }
    Ok(())
}

impl Packed {
    fn read(package: &Value, known: &[PathBuf]) -> Result<Self> {
        let text = |key: &str| package[key].as_str().unwrap_or_default();
        let (name, manifest) = (text("name").to_owned(), Path::new(text("manifest_path")));
        let stem = format!("{name}-{}", text("version"));
        let file = target().join("package").join(format!("{stem}.crate"));
        let listing = output(program("tar").arg("-tzf").arg(&file))?;
        let inside = |path: &str| path.strip_prefix(&format!("{stem}/")).map(str::to_owned);
        let files =
            listing.lines().map(|path| inside(path).with_context(|| format!("{name}: {path}")));
        let folder = manifest
            .parent()
            .unwrap_or(manifest)
            .strip_prefix(root())
            .context("a crate elsewhere")?;
        let of_folder = known.iter().filter_map(|path| path.strip_prefix(folder).ok());
        Ok(Self {
            bytes: fs::metadata(&file)?.len(),
            files: files.collect::<Result<_>>()?,
            known: of_folder.map(|path| path.to_string_lossy().replace('\\', "/")).collect(),
            name,
        })
    }

    fn findings(&self) -> Vec<String> {
        let name = &self.name;
        let missing =
            REQUIRED.iter().filter(|required| self.files.iter().all(|it| it != *required));
        let mut findings: Vec<String> =
            missing.map(|file| format!("{name} has no {file}")).collect();
        let is_foreign = |file: &&String| {
            !WRITTEN.contains(&file.as_str())
                && !REQUIRED.contains(&file.as_str())
                && !self.known.contains(file)
        };
        let foreign = self.files.iter().filter(is_foreign);
        findings
            .extend(foreign.map(|file| format!("{name} has {file}, which is not in its folder")));
        let max = if name == WITH_MODEL { MAX_BYTES_WITH_MODEL } else { MAX_BYTES };
        if self.bytes > max {
            findings.push(format!("{name} has {} of {max} bytes", self.bytes));
        }
        findings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(name: &str, bytes: u64, files: &[&str]) -> Packed {
        let files = REQUIRED.iter().chain(files).map(ToString::to_string).collect();
        Packed { name: name.into(), bytes, files, known: vec!["src/lib.rs".into()] }
    }

    #[test]
    fn a_whole_package_has_no_findings() {
        let files = ["Cargo.lock", "Cargo.toml.orig", ".cargo_vcs_info.json", "src/lib.rs"];
        assert!(packed("setun-ops", MAX_BYTES, &files).findings().is_empty());
        assert!(packed("setun", MAX_BYTES_WITH_MODEL, &files).findings().is_empty());
    }

    #[test]
    fn missing_foreign_and_large_files_are_found() {
        let mut package = packed("setun-ops", MAX_BYTES + 1, &["src/notes.txt"]);
        package.files.retain(|file| file != "LICENSE-MIT");
        let expected = [
            "setun-ops has no LICENSE-MIT".to_owned(),
            "setun-ops has src/notes.txt, which is not in its folder".to_owned(),
            format!("setun-ops has {} of {MAX_BYTES} bytes", MAX_BYTES + 1),
        ];
        assert_eq!(package.findings(), expected);
    }
}
