//! The npm packages in the scripts of the npm package.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use base64::prelude::*;
use serde_json::{Value, json};

use crate::files::{read, tracked};

const SOURCES: &str = "npm/src";
const LOCK: &str = "npm/package-lock.json";

/// An npm package whose modules are bundled.
#[derive(Debug, Default)]
pub(super) struct Bundled {
    pub(super) url: String,
    pub(super) name: String,
    pub(super) version: String,
    pub(super) licence: String,
    /// As the lock file has it: `sha512-` and base64.
    pub(super) integrity: String,
}

impl Bundled {
    pub(super) fn component(&self) -> Value {
        let hash = self.integrity.strip_prefix("sha512-").and_then(hexadecimal);
        let hashes: Vec<Value> =
            hash.iter().map(|hash| json!({ "alg": "SHA-512", "content": hash })).collect();
        json!({
            "type": "library", "bom-ref": self.url, "name": self.name, "version": self.version,
            "purl": self.url, "licenses": [{ "expression": self.licence }], "hashes": hashes,
        })
    }
}

/// The packages that the sources import, and what these depend on, as the lock file has them. Peers
/// are left out: the user's project has them.
pub(super) fn bundled() -> Result<Vec<Bundled>> {
    let lock: Value = serde_json::from_str(&read(LOCK)?).context(LOCK)?;
    let mut waiting = BTreeSet::new();
    for file in tracked()?.iter().filter(|file| file.starts_with(SOURCES)) {
        waiting.extend(imported(&read(file)?));
    }
    let peers = &lock["packages"][""]["peerDependencies"];
    waiting.retain(|name| peers[name].is_null());
    let mut found = vec![];
    while let Some(name) = waiting.pop_first() {
        let entry = &lock["packages"][format!("node_modules/{name}")];
        let text = |key: &str| {
            let value = entry[key].as_str().map(str::to_owned);
            value.with_context(|| format!("{LOCK} has no {key} of {name}"))
        };
        let (version, licence, integrity) =
            (text("version")?, text("license")?, text("integrity")?);
        // The at sign of a scope is written as its code.
        let url = format!("pkg:npm/{}@{version}", name.replace('@', "%40"));
        found.push(Bundled { url, name, version, licence, integrity });
        let uses = entry["dependencies"].as_object().into_iter().flatten().map(|(name, _)| name);
        waiting.extend(uses.filter(|name| found.iter().all(|it| it.name != **name)).cloned());
    }
    Ok(found)
}

/// Packages of the imports in a source: of what is neither a file nor has a scheme.
fn imported(source: &str) -> Vec<String> {
    let after = |line: &str| {
        let is_statement = ["import ", "export ", "} from "].iter().any(|it| line.starts_with(it));
        let line = is_statement.then_some(line)?;
        let (_, module) = line.split_once(" from \"").or_else(|| line.split_once("import \""))?;
        let module = module.split('"').next()?;
        let is_package = !module.starts_with('.') && !module.contains(':');
        let parts = if module.starts_with('@') { 2 } else { 1 };
        is_package.then(|| module.split('/').take(parts).collect::<Vec<_>>().join("/"))
    };
    source.lines().filter_map(after).collect()
}

/// Compares the packages with those that the bundler has put into `dist`, by its list of licences.
pub(crate) fn check_bundle(dist: &Path) -> Result<()> {
    let notices = std::fs::read_to_string(dist.join("THIRD_PARTY_LICENSES"))?;
    let bundled = bundled()?;
    for Bundled { name, version, licence, .. } in &bundled {
        let notice = format!("{name} {version} ({licence})");
        ensure!(notices.lines().any(|line| line == notice), "the bundle has no {notice}");
    }
    let count = notices.lines().filter(|line| is_notice(line)).count();
    let expected = bundled.len();
    ensure!(
        count == expected,
        "the bundle has {count} packages, and the sources import {expected}"
    );
    Ok(())
}

/// `NAME VERSION (LICENCE)`
fn is_notice(line: &str) -> bool {
    let mut words = line.splitn(3, ' ');
    let (Some(_), Some(version), Some(licence)) = (words.next(), words.next(), words.next()) else {
        return false;
    };
    let is_version =
        version.split('.').count() == 3 && version.starts_with(|it: char| it.is_ascii_digit());
    is_version && licence.starts_with('(') && licence.ends_with(')')
}

/// Base64 as hexadecimal digits.
fn hexadecimal(base64: &str) -> Option<String> {
    let bytes = BASE64_STANDARD.decode(base64).ok()?;
    Some(bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_of_imports_are_found() {
        let source = "import { sha256 } from \"@noble/hashes/sha2.js\";\nimport { simd } from \"wasm-feature-detect\";\n\
                      import { x } from \"./x.js\";\nimport { y } from \"node:url\";\n\
                      const z = 'import \"z\" instead';\n} from \"w\";\n";
        assert_eq!(imported(source), ["@noble/hashes", "wasm-feature-detect", "w"]);
    }

    #[test]
    fn base64_becomes_hexadecimal() {
        assert_eq!(hexadecimal("").unwrap(), "");
        assert_eq!(hexadecimal("AP8Q").unwrap(), "00ff10");
        assert_eq!(hexadecimal("q80=").unwrap(), "abcd");
        assert_eq!(hexadecimal("!"), None);
    }

    #[test]
    fn a_notice_is_known_by_its_form() {
        assert!(is_notice("@noble/hashes 2.4.0 (MIT)"));
        assert!(!is_notice("Copyright 2024 (c) Somebody"));
    }
}
