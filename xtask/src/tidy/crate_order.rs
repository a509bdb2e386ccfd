//! Each crate depends only on those above it, and none below the command on a runtime or device.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use serde_json::Value;

use super::Findings;
use crate::shell::{cargo, output};

/// Each crate's place; a crate depends only on crates of a lower place.
const ORDER: [(&str, u32); 12] = [
    ("setun-ops", 0),
    ("setun-text", 0),
    ("setun-shaders", 0),
    ("setun-checkpoint", 1),
    ("setun-cpu", 1),
    ("setun-gpu", 1),
    ("setun-model", 2),
    ("setun", 3),
    ("setun-cli", 4),
    ("setun-wasm", 4),
    ("setun-tests", 4),
    ("xtask", 5),
];

/// Crates that must stay out of everything but the command and the tests.
const KEPT_OUT: [&str; 12] = [
    "tokio",
    "async-std",
    "smol",
    "hyper",
    "reqwest",
    "ureq",
    "axum",
    "hf-hub",
    "wgpu",
    "cudarc",
    "openssl",
    "rustls",
];

/// Crates that may use the above.
const FREE: [&str; 3] = ["setun-cli", "setun-tests", "xtask"];

pub(super) fn check() -> Result<Findings> {
    let mut command = cargo();
    command.args(["metadata", "--format-version", "1", "--locked"]);
    let metadata: Value = serde_json::from_str(&output(&mut command)?)?;
    findings(&metadata)
}

fn findings(metadata: &Value) -> Result<Findings> {
    let packages = metadata["packages"].as_array().context("cargo metadata has no packages")?;
    let mut findings = Findings::new();
    for package in packages.iter().filter(|package| package["source"].is_null()) {
        let name = package["name"].as_str().unwrap_or_default();
        let Some(own) = place(name) else {
            findings.push(format!("{name} has no place in the order"));
            continue;
        };
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let on = dependency["name"].as_str().unwrap_or_default();
            if place(on).is_some_and(|place| place >= own) {
                findings.push(format!("{name} depends on {on}, which is not above it"));
            }
        }
        if !FREE.contains(&name) {
            let reached = reached_from(metadata, &package["id"])?;
            for kept_out in KEPT_OUT.iter().filter(|name| reached.contains(**name)) {
                findings.push(format!("{name} pulls in {kept_out}"));
            }
        }
    }
    Ok(findings)
}

fn place(name: &str) -> Option<u32> {
    ORDER.iter().find(|(known, _)| *known == name).map(|(_, place)| *place)
}

/// Names of all crates linked into the one with `id`, in any feature in use in the workspace.
fn reached_from<'a>(metadata: &'a Value, id: &'a Value) -> Result<BTreeSet<&'a str>> {
    let nodes = metadata["resolve"]["nodes"].as_array().context("cargo metadata has no graph")?;
    let packages = metadata["packages"].as_array().context("cargo metadata has no packages")?;
    let mut ids = BTreeSet::new();
    let mut waiting = vec![id];
    while let Some(id) = waiting.pop() {
        if !ids.insert(id.as_str()) {
            continue;
        }
        let node =
            nodes.iter().find(|node| node["id"] == *id).context("a crate is not in the graph")?;
        for dependency in node["deps"].as_array().into_iter().flatten() {
            let kinds = dependency["dep_kinds"].as_array().into_iter().flatten();
            if kinds.into_iter().any(|kind| kind["kind"].is_null()) {
                waiting.push(&dependency["pkg"]);
            }
        }
    }
    let names = packages.iter().filter(|package| ids.contains(&package["id"].as_str()));
    Ok(names.filter_map(|package| package["name"].as_str()).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn workspace(edges: &[(&str, &str)]) -> Value {
        let mut names: Vec<&str> = edges.iter().flat_map(|(from, to)| [*from, *to]).collect();
        names.sort_unstable();
        names.dedup();
        let below = |name: &str| -> Vec<&str> {
            edges.iter().filter(|(from, _)| *from == name).map(|(_, to)| *to).collect()
        };
        let packages: Vec<Value> = names
            .iter()
            .map(|name| {
                let dependencies: Vec<Value> =
                    below(name).iter().map(|name| json!({ "name": name })).collect();
                let source = if place(name).is_some() { Value::Null } else { json!("registry") };
                json!({ "id": name, "name": name, "source": source, "dependencies": dependencies })
            })
            .collect();
        let nodes: Vec<Value> = names
            .iter()
            .map(|name| {
                let linked: Vec<Value> = below(name)
                    .iter()
                    .map(|name| json!({ "pkg": name, "dep_kinds": [{ "kind": null }] }))
                    .collect();
                json!({ "id": name, "deps": linked })
            })
            .collect();
        json!({ "packages": packages, "resolve": { "nodes": nodes } })
    }

    #[test]
    fn arrows_go_down_only() {
        let good = [("setun-model", "setun-ops"), ("setun-cli", "setun"), ("setun-cli", "tokio")];
        assert!(findings(&workspace(&good)).unwrap().is_empty());
        let up = findings(&workspace(&[("setun-ops", "setun-model")])).unwrap();
        assert_eq!(up, ["setun-ops depends on setun-model, which is not above it"]);
        let sideways = findings(&workspace(&[("setun-cpu", "setun-checkpoint")])).unwrap();
        assert_eq!(sideways.len(), 1);
    }

    #[test]
    fn runtimes_are_found_at_any_depth() {
        let edges = [("setun", "helper"), ("helper", "tokio")];
        assert_eq!(findings(&workspace(&edges)).unwrap(), ["setun pulls in tokio"]);
    }
}
