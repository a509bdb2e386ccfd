//! The workspace's packages and their graph, from `cargo metadata`.

use anyhow::{Context, Result};
use serde_json::Value;

use crate::shell::{cargo, output, program};
use crate::toolchain::TARGET;

/// Which platforms' dependencies are in the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Platform {
    /// All that any platform could need.
    Any,
    /// This machine's.
    Here,
    /// The browser's.
    Wasm,
}

/// `cargo metadata`: packages and their graph.
pub(crate) fn metadata(platform: Platform) -> Result<Value> {
    metadata_with(platform, &[])
}

/// The same with features of packages, each as `package/feature`.
pub(crate) fn metadata_with(platform: Platform, features: &[String]) -> Result<Value> {
    let mut command = cargo();
    command.args(["metadata", "--format-version", "1", "--locked"]);
    match platform {
        Platform::Any => {}
        Platform::Here => {
            command.args(["--filter-platform", &this_platform()?]);
        }
        Platform::Wasm => {
            command.args(["--filter-platform", TARGET]);
        }
    }
    if !features.is_empty() {
        command.args(["--features", &features.join(",")]);
    }
    serde_json::from_str(&output(&mut command)?).context("cargo metadata is not JSON")
}

/// The packages of `metadata`.
pub(crate) fn packages(metadata: &Value) -> Result<&Vec<Value>> {
    metadata["packages"].as_array().context("cargo metadata has no packages")
}

/// True for a crate of this workspace.
pub(crate) fn is_ours(package: &Value) -> bool {
    package["source"].is_null()
}

/// The ids of the crate with `id` and of all whose code is linked into it, procedural macros and
/// what they use left out.
pub(crate) fn linked<'a>(metadata: &'a Value, id: &'a Value) -> Result<Vec<&'a Value>> {
    let nodes = metadata["resolve"]["nodes"].as_array().context("cargo metadata has no graph")?;
    let packages = packages(metadata)?;
    let mut found = Vec::new();
    let mut waiting = vec![id];
    while let Some(id) = waiting.pop() {
        let package = packages.iter().find(|package| package["id"] == *id);
        let package = package.context("a crate of the graph is no package")?;
        if found.contains(&id) || is_macro(package) {
            continue;
        }
        found.push(id);
        let node =
            nodes.iter().find(|node| node["id"] == *id).context("a crate is not in the graph")?;
        let dependencies = node["deps"].as_array().into_iter().flatten();
        waiting.extend(
            dependencies
                .filter(|dependency| is_linked(dependency))
                .map(|dependency| &dependency["pkg"]),
        );
    }
    Ok(found)
}

/// True for a dependency of the code itself, not of its tests or build script.
fn is_linked(dependency: &Value) -> bool {
    dependency["dep_kinds"].as_array().into_iter().flatten().any(|kind| kind["kind"].is_null())
}

fn is_macro(package: &Value) -> bool {
    let targets = package["targets"].as_array().into_iter().flatten();
    targets
        .filter_map(|target| target["kind"].as_array())
        .flatten()
        .any(|kind| kind == "proc-macro")
}

fn this_platform() -> Result<String> {
    let printed = output(program("rustc").arg("-vV"))?;
    let host = printed.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc -vV names no host")?.to_owned())
}
