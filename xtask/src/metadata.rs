//! The workspace's packages, from `cargo metadata`, and what is linked into them, from `cargo tree`.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::shell::{cargo, output};

/// A package: name and version.
pub(crate) type Package = (String, String);

/// Packages, each with those that it uses directly.
pub(crate) type Graph = BTreeMap<Package, BTreeSet<Package>>;

/// The manifest of this workspace.
pub(crate) const WORKSPACE: &str = "Cargo.toml";

/// `cargo metadata` of a workspace: the packages of its lock file, with what any feature brings.
pub(crate) fn metadata(manifest: &str) -> Result<Value> {
    let mut command = cargo();
    command.args(["metadata", "--format-version", "1", "--locked", "--all-features"]);
    command.args(["--manifest-path", manifest]);
    let printed = output(&mut command)?;
    serde_json::from_str(&printed).context("cargo metadata is not JSON")
}

/// The manifest of the workspace of queries and batch jobs, which has a lock file of its own.
pub(crate) const BATCH: &str = "batch/Cargo.toml";

/// The crates of both workspaces, without what they depend on.
pub(crate) fn own_packages() -> Result<Vec<Value>> {
    let mut all = vec![];
    for manifest in [WORKSPACE, BATCH] {
        let mut command = cargo();
        command.args(["metadata", "--format-version", "1", "--locked", "--no-deps"]);
        let printed = output(command.args(["--manifest-path", manifest]))?;
        let metadata: Value =
            serde_json::from_str(&printed).context("cargo metadata is not JSON")?;
        all.extend(packages(&metadata)?.iter().cloned());
    }
    Ok(all)
}

/// The packages of `metadata`.
pub(crate) fn packages(metadata: &Value) -> Result<&Vec<Value>> {
    metadata["packages"].as_array().context("cargo metadata has no packages")
}

/// True for a crate of this workspace.
pub(crate) fn is_ours(package: &Value) -> bool {
    package["source"].is_null()
}

/// True for a crate of this workspace that a registry gets.
pub(crate) fn is_published(package: &Value) -> bool {
    is_ours(package)
        && package["publish"].as_array().is_none_or(|registries| !registries.is_empty())
}

/// A crate as it is compiled: its package, target and features, and flags of the compiler, on which
/// dependencies may depend.
#[derive(Clone, Debug)]
pub(crate) struct Build {
    /// Manifest of its workspace.
    pub(crate) manifest: &'static str,
    pub(crate) package: String,
    pub(crate) target: String,
    pub(crate) features: Vec<String>,
    pub(crate) rustflags: String,
}

impl Build {
    /// A package for a target, without further choices.
    pub(crate) fn new(package: &str, target: &str) -> Self {
        let (package, target) = (package.to_owned(), target.to_owned());
        let (manifest, features, rustflags) = (WORKSPACE, vec![], String::new());
        Self { manifest, package, target, features, rustflags }
    }

    /// A cargo command with this build's choices.
    pub(crate) fn command(&self, subcommand: &str) -> Command {
        let mut command = cargo();
        command.args([subcommand, "--locked", "--manifest-path", self.manifest]);
        command.args(["--package", &self.package]);
        command.args(["--target", &self.target]);
        command.args(["--features", &self.features.join(",")]);
        if !self.rustflags.is_empty() {
            command.env("RUSTFLAGS", &self.rustflags).env_remove("CARGO_ENCODED_RUSTFLAGS");
        }
        command
    }

    /// All crates whose code is linked, itself among them; procedural macros, build scripts and what
    /// they use left out.
    pub(crate) fn linked(&self) -> Result<Graph> {
        let mut command = self.command("tree");
        command.args(["--edges", "normal,no-proc-macro", "--prefix", "depth", "--format", "{p}"]);
        graph(&output(&mut command)?)
    }
}

/// The packages of a tree whose lines begin with their depth. One that occurs again has its
/// dependencies where it occurred first.
fn graph(tree: &str) -> Result<Graph> {
    let mut graph = Graph::new();
    let mut path: Vec<Package> = vec![];
    for line in tree.lines() {
        let digits = line.find(|character: char| !character.is_ascii_digit()).unwrap_or(0);
        let (depth, package) = line.split_at(digits);
        let depth: usize = depth.parse().with_context(|| format!("no depth in {line:?}"))?;
        let package =
            name_and_version(package).with_context(|| format!("no package in {line:?}"))?;
        path.truncate(depth);
        if let Some(user) = path.last() {
            graph.entry(user.clone()).or_default().insert(package.clone());
        }
        graph.entry(package.clone()).or_default();
        path.push(package);
    }
    Ok(graph)
}

/// Of `NAME vVERSION`, and what may come after it.
fn name_and_version(line: &str) -> Option<Package> {
    let mut words = line.split(' ');
    let (name, version) = (words.next()?, words.next()?.strip_prefix('v')?);
    Some((name.to_owned(), version.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_tree_are_read() {
        let expected = Some(("half".to_owned(), "2.7.1".to_owned()));
        for line in ["half v2.7.1", "half v2.7.1 (*)", "half v2.7.1 (/a/folder)"] {
            assert_eq!(name_and_version(line), expected, "{line}");
        }
        assert_eq!(name_and_version(""), None);
    }

    #[test]
    fn a_tree_is_a_graph() {
        let key = |name: &str| (name.to_owned(), "1.0.0".to_owned());
        let tree = "0a v1.0.0 (/a/folder)\n1b v1.0.0\n2c v1.0.0\n1d v1.0.0\n2b v1.0.0 (*)\n";
        let graph = graph(tree).unwrap();
        let uses = |name: &str| graph[&key(name)].iter().cloned().collect::<Vec<_>>();
        assert_eq!(uses("a"), [key("b"), key("d")]);
        assert_eq!(uses("b"), [key("c")]);
        assert_eq!(uses("d"), [key("b")]);
        assert_eq!(uses("c"), []);
        assert!(super::graph("a v1.0.0\n").is_err(), "a line without a depth");
    }

    #[test]
    fn what_a_registry_gets_is_said_by_publish() {
        let package = |publish: Value| serde_json::json!({ "source": null, "publish": publish });
        assert!(is_published(&package(Value::Null)));
        assert!(!is_published(&package(serde_json::json!([]))));
        assert!(!is_published(&serde_json::json!({ "source": "registry", "publish": null })));
    }
}
