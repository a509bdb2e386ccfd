//! Lock files: the public registries alone, so that anyone can install from them.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::Findings;
use crate::files::read;

const CRATES: &str = "registry+https://github.com/rust-lang/crates.io-index";
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
    Ok(findings)
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
}
