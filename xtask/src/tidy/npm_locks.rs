//! Lock files of npm: complete, as their manifests say, each package with its digest, an allowed licence and no install script.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::{Map, Value};

use super::Findings;
use crate::files::read;

/// Kinds of dependencies that are installed.
const KINDS: [&str; 4] =
    ["dependencies", "devDependencies", "optionalDependencies", "peerDependencies"];

/// Characters of the base64 form of a SHA-512.
const DIGEST: usize = 88;

/// Licences of packages, most of which build and test alone. What the scripts of the npm package
/// contain is among its `THIRD_PARTY_LICENSES`.
const LICENCES: [&str; 10] = [
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BlueOak-1.0.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MPL-2.0",
    "Python-2.0",
];

/// Its licence is BSD-3-Clause by its file `LICENSE`; its manifest names none. Lighthouse needs it.
const UNNAMED: &str = "node_modules/parse-cache-control";

pub(super) fn check(files: &[PathBuf]) -> Result<Findings> {
    let mut findings = Findings::new();
    for file in files.iter().filter(|file| file.ends_with("package-lock.json")) {
        let parsed = |path: &Path| -> Result<Value> {
            serde_json::from_str(&read(path)?).with_context(|| path.display().to_string())
        };
        let found = of_lock(&parsed(file)?, &parsed(&file.with_file_name("package.json"))?);
        findings.extend(found.into_iter().map(|finding| format!("{}: {finding}", file.display())));
    }
    Ok(findings)
}

fn of_lock(lock: &Value, manifest: &Value) -> Findings {
    let Some(packages) = lock["packages"].as_object().filter(|_| lock["lockfileVersion"] == 3)
    else {
        return vec!["it is not of version 3".to_owned()];
    };
    let mut findings = Findings::new();
    for kind in KINDS {
        if manifest[kind] != packages.get("").unwrap_or(&Value::Null)[kind] {
            findings.push(format!("its {kind} are not those of package.json"));
        }
        let ranges = manifest[kind].as_object().into_iter().flatten();
        let ranges = ranges.filter(|(_, version)| !is_exact(version.as_str().unwrap_or_default()));
        let ranges =
            ranges.filter(|(name, _)| kind != "peerDependencies" || !is_pinned(name, manifest));
        findings
            .extend(ranges.map(|(name, version)| format!("{name} is {version}, not one version")));
    }
    for (place, package) in packages {
        findings.extend(missing(place, package, packages));
        if !place.is_empty() {
            findings
                .extend(of_package(place, package).map(|finding| format!("{place}: {finding}")));
        }
    }
    findings
}

/// Whether development installs one version of a peer, whose range is for the users' own.
fn is_pinned(name: &str, manifest: &Value) -> bool {
    manifest["devDependencies"][name].as_str().is_some_and(is_exact)
}

fn is_exact(version: &str) -> bool {
    version.split('.').count() == 3 && version.starts_with(|it: char| it.is_ascii_digit())
}

/// Everything that lets another file than the one of the digest be installed, or runs one.
fn of_package(place: &str, package: &Value) -> impl Iterator<Item = &'static str> {
    let digest = package["integrity"].as_str().and_then(|it| it.strip_prefix("sha512-"));
    [
        (digest.is_none_or(|digest| digest.len() != DIGEST), "no SHA-512"),
        (package["link"] == true, "a link to a folder"),
        (package["hasInstallScript"] == true, "a script at installation"),
        (!package["version"].is_string(), "no version"),
        (!has_licence(package) && place != UNNAMED, "no licence of those that are allowed"),
    ]
    .into_iter()
    .filter_map(|(is_found, finding)| is_found.then_some(finding))
}

/// Whether one of a package's alternative licences is allowed.
fn has_licence(package: &Value) -> bool {
    let licences = package["license"].as_str().unwrap_or_default();
    let alternatives = licences.trim_start_matches('(').trim_end_matches(')').split(" OR ");
    alternatives.into_iter().any(|licence| LICENCES.contains(&licence))
}

/// Dependencies of the package at `place` that the lock file lacks. A tool for another platform may be
/// absent, where its user names one version: npm leaves out what it cannot see.
fn missing(place: &str, package: &Value, packages: &Map<String, Value>) -> Findings {
    let is_optional = |name: &str| {
        let version = package["optionalDependencies"][name].as_str();
        version.is_some_and(is_exact) || package["peerDependenciesMeta"][name]["optional"] == true
    };
    let kinds = KINDS.into_iter().filter(|kind| place.is_empty() || *kind != "devDependencies");
    let names = kinds
        .flat_map(|kind| package[kind].as_object().into_iter().flatten().map(|(name, _)| name));
    let absent = names.filter(|name| !is_found(place, name, packages) && !is_optional(name));
    let user = if place.is_empty() { "package.json" } else { place };
    absent.map(|name| format!("{user} needs {name}, which is not there")).collect()
}

/// Looks for a package as Node does: beside its user, then in each folder above.
fn is_found(place: &str, name: &str, packages: &Map<String, Value>) -> bool {
    let mut place = Some(place);
    while let Some(user) = place {
        let folder = if user.is_empty() { String::new() } else { format!("{user}/") };
        if packages.contains_key(&format!("{folder}node_modules/{name}")) {
            return true;
        }
        let above = user.rfind("node_modules/").map(|at| user[..at].trim_end_matches('/'));
        place = above.filter(|_| !user.is_empty());
    }
    false
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn digest() -> String {
        format!("sha512-{}==", "A".repeat(DIGEST - 2))
    }

    fn lock() -> Value {
        json!({ "lockfileVersion": 3, "packages": {
            "": { "devDependencies": { "a": "1.0.0" } },
            "node_modules/a": { "version": "1.0.0", "license": "(MIT OR X)", "integrity": digest(), "dependencies": { "b": "^2" } },
            "node_modules/a/node_modules/b": { "version": "2.1.0", "license": "Apache-2.0", "integrity": digest(), "dependencies": { "c": "*" } },
            "node_modules/c": { "version": "3.0.0", "license": "MIT", "integrity": digest() },
        }})
    }

    fn manifest() -> Value {
        json!({ "devDependencies": { "a": "1.0.0" } })
    }

    #[test]
    fn a_whole_lock_file_has_no_findings() {
        assert_eq!(of_lock(&lock(), &manifest()), Findings::new());
    }

    #[test]
    fn each_fault_is_found() {
        let cases = [
            (
                "/packages/node_modules~1c/integrity",
                json!("sha1-AAAA"),
                "node_modules/c: no SHA-512",
            ),
            (
                "/packages/node_modules~1c/hasInstallScript",
                json!(true),
                "node_modules/c: a script at installation",
            ),
            (
                "/packages/node_modules~1c/license",
                json!("MIT AND GPL-3.0-only"),
                "node_modules/c: no licence of those that are allowed",
            ),
            (
                "/packages/node_modules~1c/license",
                Value::Null,
                "node_modules/c: no licence of those that are allowed",
            ),
            ("/packages/node_modules~1c/link", json!(true), "node_modules/c: a link to a folder"),
            ("/packages/node_modules~1c/version", Value::Null, "node_modules/c: no version"),
            (
                "/packages/node_modules~1c/dependencies",
                json!({ "d": "1" }),
                "node_modules/c needs d, which is not there",
            ),
            (
                "/packages/node_modules~1c/optionalDependencies",
                json!({ "d": "^1.0.0" }),
                "node_modules/c needs d, which is not there",
            ),
            ("/lockfileVersion", json!(2), "it is not of version 3"),
        ];
        for (pointer, value, expected) in cases {
            let mut lock = lock();
            let (parent, key) = pointer.rsplit_once('/').unwrap();
            lock.pointer_mut(parent).unwrap()[key] = value;
            assert_eq!(of_lock(&lock, &manifest()), [expected], "{pointer}");
        }
    }

    #[test]
    fn a_tool_of_another_platform_may_be_absent() {
        let mut lock = lock();
        lock["packages"]["node_modules/c"]["optionalDependencies"] =
            json!({ "d-windows": "1.0.0" });
        assert_eq!(of_lock(&lock, &manifest()), Findings::new());
    }

    #[test]
    fn a_manifest_names_one_version_of_each() {
        let manifest = json!({ "devDependencies": { "a": "^1.0.0" } });
        let expected = [
            "its devDependencies are not those of package.json",
            "a is \"^1.0.0\", not one version",
        ];
        assert_eq!(of_lock(&lock(), &manifest), expected);
    }

    #[test]
    fn a_peer_may_be_a_range_if_development_installs_one_version() {
        let manifest = |pinned: &str| json!({ "devDependencies": { "a": pinned }, "peerDependencies": { "a": "^1" } });
        let findings = |pinned: &str| {
            let mut lock = lock();
            lock["packages"][""] = manifest(pinned);
            of_lock(&lock, &manifest(pinned))
        };
        assert_eq!(findings("1.0.0"), Findings::new());
        assert_eq!(findings("^1.0.0").len(), 2);
    }
}
