//! Layers of the crates: each depends only on lower ones, and none below the command on a runtime or device.

use anyhow::Result;
use serde_json::Value;

use super::Findings;
use crate::metadata::{Build, Graph, own_packages};
use crate::parallel::parallel_map;
use crate::toolchain::{TARGET, host};

/// The crates, lowest layer first; a crate depends only on crates of lower layers.
const LAYERS: [&[&str]; 10] = [
    &["setun-clock", "setun-ops", "setun-shaders"],
    &["setun-text", "setun-parity"], // the latter for tests alone
    &["setun-checkpoint", "setun-grammar", "setun-cpu", "setun-gpu"],
    &["setun-model"],
    &["setun-engine", "setun-hub"],
    &["setun"],
    &["setun-serve", "setun-simulate", "setun-sql"],
    &[
        "setun-cli",
        "setun-wasm",
        "setun-grammar-wasm",
        "setun-onnx-wasm",
        "setun-python",
        "setun-tests",
    ],
    &["setun-batch"],
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
const FREE: [&str; 8] = [
    "setun-batch",
    "setun-cli",
    "setun-hub",
    "setun-python",
    "setun-serve",
    "setun-sql",
    "setun-tests",
    "xtask",
];

pub(super) fn check() -> Result<Findings> {
    let ours = own_packages()?;
    let mut findings = Findings::new();
    for package in &ours {
        findings.extend(arrows_up(package));
    }
    let names = ours.iter().filter_map(|package| package["name"].as_str());
    let targets = [host()?, TARGET.to_owned()];
    let builds: Vec<_> = names
        .filter(|name| !FREE.contains(name))
        .flat_map(|name| targets.iter().map(move |target| (name, target)))
        .collect();
    let found = parallel_map(&builds, |(name, target)| {
        Ok(kept_out(name, &Build::new(name, target).linked()?))
    })?;
    findings.extend(found.concat());
    findings.dedup();
    Ok(findings)
}

/// Dependencies of a package on crates that are in no lower layer.
fn arrows_up(package: &Value) -> Findings {
    let name = package["name"].as_str().unwrap_or_default();
    let Some(own) = layer(name) else { return vec![format!("{name} has no layer")] };
    let dependencies = package["dependencies"].as_array().into_iter().flatten();
    let names = dependencies.filter_map(|dependency| dependency["name"].as_str());
    // A crate may request a feature of itself in its tests.
    let up = names.filter(|on| *on != name && layer(on).is_some_and(|layer| layer >= own));
    up.map(|on| format!("{name} depends on {on}, which is in no lower layer")).collect()
}

/// Those of the crates linked into `name` that must not be. What is optional is not linked.
fn kept_out(name: &str, linked: &Graph) -> Findings {
    let names = linked.keys().map(|(linked, _)| linked.as_str());
    let found = names.filter(|linked| KEPT_OUT.contains(linked));
    found.map(|linked| format!("{name} pulls in {linked}")).collect()
}

fn layer(name: &str) -> Option<usize> {
    LAYERS.iter().position(|crates| crates.contains(&name))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::*;

    #[test]
    fn arrows_go_down_only() {
        let package = |name: &str, on: &str| json!({ "name": name, "dependencies": [{ "name": on }, { "name": "tokio" }] });
        for (name, on) in
            [("setun-model", "setun-ops"), ("setun-cli", "setun"), ("setun-cpu", "setun-cpu")]
        {
            assert!(arrows_up(&package(name, on)).is_empty(), "{name} {on}");
        }
        let up = arrows_up(&package("setun-ops", "setun-model"));
        assert_eq!(up, ["setun-ops depends on setun-model, which is in no lower layer"]);
        assert_eq!(arrows_up(&package("setun-cpu", "setun-checkpoint")).len(), 1, "sideways");
        assert_eq!(arrows_up(&package("other", "setun")), ["other has no layer"]);
    }

    #[test]
    fn runtimes_are_found_at_any_depth() {
        let package = |name: &str| ((name.to_owned(), "1.0.0".to_owned()), BTreeSet::new());
        let linked = Graph::from(["setun", "helper", "tokio"].map(package));
        assert_eq!(kept_out("setun", &linked), ["setun pulls in tokio"]);
    }
}
