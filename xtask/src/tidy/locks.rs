//! Lock files: the public registries alone, so that anyone can install from them; one version of a crate in both workspaces.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::Findings;
use crate::files::read;

const CRATES: &str = "registry+https://github.com/rust-lang/crates.io-index";
const ROOT: &str = "Cargo.lock";
const BATCH: &str = "batch/Cargo.lock";
const PACKAGES: &str = "https://registry.npmjs.org/";

pub(super) fn check(files: &[PathBuf]) -> Result<Findings> {
    let mut findings = Findings::new();
    for file in files {
        let (key, registry) = match file.file_name().and_then(|name| name.to_str()) {
            Some("Cargo.lock") => ("source = \"", CRATES),
            Some("package-lock.json") => ("\"resolved\": \"", PACKAGES),
            _ => continue,
        };
        findings.extend(others(file, &read(file)?, key, registry));
    }
    findings.extend(apart(&read(ROOT)?, &read(BATCH)?));
    Ok(findings)
}

/// Crates that both lock files have in different versions, where one would do.
fn apart(root: &str, batch: &str) -> Findings {
    let (root, batch) = (versions(root), versions(batch));
    let both = root.iter().filter_map(|(key, version)| Some((key, version, batch.get(key)?)));
    both.filter(|(_, version, other)| version != other)
        .map(|((name, _), version, other)| {
            format!("{name}: {version} in {ROOT}, {other} in {BATCH}")
        })
        .collect()
}

/// The version of each package of a lock file, by its name and what of the version says whether another fits.
fn versions(lock: &str) -> BTreeMap<(&str, &str), &str> {
    let mut lines = lock.lines();
    let mut found = BTreeMap::new();
    while let Some(line) = lines.next() {
        let Some(name) = line.strip_prefix("name = \"") else { continue };
        let version = lines.next().and_then(|line| line.strip_prefix("version = \""));
        if let Some(version) = version {
            let version = version.trim_end_matches('"');
            found.insert((name.trim_end_matches('"'), compatible(version)), version);
        }
    }
    found
}

/// The beginning of a version up to its first number that is not 0.
fn compatible(version: &str) -> &str {
    let first = version.find(|character: char| ('1'..='9').contains(&character)).unwrap_or(0);
    let end = version[first..].find(|character: char| !character.is_ascii_digit());
    end.map_or(version, |end| &version[..first + end])
}

fn others(file: &Path, text: &str, key: &str, registry: &str) -> Findings {
    text.lines()
        .enumerate()
        .filter_map(|(at, line)| Some((at, line.trim().strip_prefix(key)?)))
        .filter(|(_, source)| !source.starts_with(registry))
        .map(|(at, source)| format!("{}:{}: {source}", file.display(), at + 1))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_registries_are_found() {
        let text = "\"resolved\": \"https://registry.npmjs.org/vite/-/vite-8.3.8.tgz\",\n\
                    \"resolved\": \"https://mirror.example/vite-8.3.8.tgz\",\n";
        let findings = others(Path::new("package-lock.json"), text, "\"resolved\": \"", PACKAGES);
        assert_eq!(findings.len(), 1);
        assert!(
            findings[0].starts_with("package-lock.json:2: https://mirror.example"),
            "{findings:?}"
        );
    }

    #[test]
    fn one_version_is_in_both_lock_files() {
        let lock = |versions: [&str; 3]| {
            let entry = |(name, version)| {
                format!("[[package]]\nname = \"{name}\"\nversion = \"{version}\"\n\n")
            };
            ["a", "b", "c"].into_iter().zip(versions).map(entry).collect::<String>()
        };
        let root = lock(["1.2.3", "0.4.5", "0.0.6"]);
        assert!(apart(&root, &lock(["2.0.0", "0.5.0", "0.0.7"])).is_empty(), "others are needed");
        let found = apart(&root, &lock(["1.10.0", "0.4.6", "0.0.6"]));
        let expected = [
            "a: 1.2.3 in Cargo.lock, 1.10.0 in batch/Cargo.lock",
            "b: 0.4.5 in Cargo.lock, 0.4.6 in batch/Cargo.lock",
        ];
        assert_eq!(found, expected);
    }
}
