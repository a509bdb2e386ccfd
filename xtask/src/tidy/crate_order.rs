//! Layers of the crates: each depends only on lower ones, and none below the command on a runtime or device.

use std::collections::BTreeSet;

use anyhow::Result;
use serde_json::Value;

use super::Findings;
use crate::metadata::{Platform, is_ours, linked, metadata, packages};

/// The crates, lowest layer first; a crate depends only on crates of lower layers.
const LAYERS: [&[&str]; 8] = [
    &["setun-ops", "setun-text", "setun-shaders"],
    &["setun-parity"], // for tests alone
    &["setun-checkpoint", "setun-grammar", "setun-cpu", "setun-gpu"],
    &["setun-model"],
    &["setun-engine", "setun-hub"],
    &["setun"],
    &["setun-cli", "setun-wasm", "setun-grammar-wasm", "setun-tests"],
    &["xtask"],
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
const FREE: [&str; 4] = ["setun-cli", "setun-hub", "setun-tests", "xtask"];

/// Optional dependencies that may bring the above, natively alone: who does not ask for them by a
/// feature has neither.
const OPTIONAL: [(&str, &str); 1] = [("setun", "setun-hub")];

pub(super) fn check() -> Result<Findings> {
    let mut all = BTreeSet::new();
    for (platform, optional) in [(Platform::Here, &OPTIONAL[..]), (Platform::Wasm, &[])] {
        all.extend(findings(&metadata(platform)?, optional)?);
    }
    Ok(all.into_iter().collect())
}

fn findings(metadata: &Value, optional: &[(&str, &str)]) -> Result<Findings> {
    let packages = packages(metadata)?;
    let optional = brought(metadata, optional)?;
    let mut findings = Findings::new();
    for package in packages.iter().filter(|package| is_ours(package)) {
        let name = package["name"].as_str().unwrap_or_default();
        let Some(own) = layer(name) else {
            findings.push(format!("{name} has no layer"));
            continue;
        };
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let on = dependency["name"].as_str().unwrap_or_default();
            if on != name && layer(on).is_some_and(|layer| layer >= own) {
                findings.push(format!("{name} depends on {on}, which is in no lower layer"));
            }
        }
        if !FREE.contains(&name) {
            let mut ids = linked(metadata, &package["id"])?;
            for brought in &optional {
                ids.retain(|id| !brought.contains(id));
            }
            let linked = packages.iter().filter(|package| ids.contains(&&package["id"]));
            let names = linked.filter_map(|package| package["name"].as_str());
            let kept_out = names.filter(|name| KEPT_OUT.contains(name));
            findings.extend(kept_out.map(|kept_out| format!("{name} pulls in {kept_out}")));
        }
    }
    Ok(findings)
}

/// What comes by optional dependencies. The graph is of the whole workspace, so who depends on a
/// crate seems to have the features that the command asks of it.
fn brought<'a>(metadata: &'a Value, optional: &[(&str, &str)]) -> Result<Vec<Vec<&'a Value>>> {
    let packages = packages(metadata)?;
    let mut all = vec![];
    for (of, by) in optional {
        let is_so = |package: &Value| package["name"] == *of && is_optional(package, by);
        if packages.iter().any(is_so) {
            for package in packages.iter().filter(|package| package["name"] == *by) {
                all.push(linked(metadata, &package["id"])?);
            }
        }
    }
    Ok(all)
}

/// Whether a crate can be had without a dependency of its own, and is unless a feature is named.
fn is_optional(package: &Value, on: &str) -> bool {
    let mut dependencies = package["dependencies"].as_array().into_iter().flatten();
    let default = package["features"]["default"].as_array().is_some_and(|list| !list.is_empty());
    !default
        && dependencies.any(|dependency| dependency["name"] == on && dependency["optional"] == true)
}

fn layer(name: &str) -> Option<usize> {
    LAYERS.iter().position(|crates| crates.contains(&name))
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
                let source = if layer(name).is_some() { Value::Null } else { json!("registry") };
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
        assert!(findings(&workspace(&good), &[]).unwrap().is_empty());
        let up = findings(&workspace(&[("setun-ops", "setun-model")]), &[]).unwrap();
        assert_eq!(up, ["setun-ops depends on setun-model, which is in no lower layer"]);
        // A crate may ask for a feature of itself in its tests.
        assert!(findings(&workspace(&[("setun-cpu", "setun-cpu")]), &[]).unwrap().is_empty());
        let sideways = findings(&workspace(&[("setun-cpu", "setun-checkpoint")]), &[]).unwrap();
        assert_eq!(sideways.len(), 1);
    }

    #[test]
    fn runtimes_are_found_at_any_depth() {
        let edges = [("setun", "helper"), ("helper", "tokio")];
        assert_eq!(findings(&workspace(&edges), &[]).unwrap(), ["setun pulls in tokio"]);
    }

    #[test]
    fn what_is_optional_may_bring_them_and_nothing_else_may() {
        let optional = [("setun", "ureq")];
        let edges = [("setun", "ureq"), ("ureq", "rustls"), ("setun-wasm", "setun")];
        let mut workspace = workspace(&edges);
        assert_eq!(findings(&workspace, &optional).unwrap().len(), 4, "it is not optional");
        let packages = workspace["packages"].as_array_mut().unwrap();
        let setun = packages.iter_mut().find(|package| package["name"] == "setun").unwrap();
        setun["dependencies"][0]["optional"] = Value::Bool(true);
        assert!(findings(&workspace, &optional).unwrap().is_empty());
        assert_eq!(findings(&workspace, &[]).unwrap().len(), 4);
        let other = [("setun", "helper")];
        assert_eq!(findings(&workspace, &other).unwrap().len(), 4);
    }
}
