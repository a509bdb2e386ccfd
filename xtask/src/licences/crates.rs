//! Crates, as cargo knows them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use super::Part;
use crate::shell::{cargo, output};

/// Beginnings of the names of licence files.
const FILE_NAMES: [&str; 4] = ["LICENSE", "LICENCE", "COPYING", "NOTICE"];

/// Every crate from a registry that a crate of the workspace can depend on.
pub(crate) fn all() -> Result<Vec<Part>> {
    let metadata = metadata(None)?;
    let packages = metadata["packages"].as_array().context("cargo metadata has no packages")?;
    packages.iter().filter(|package| !package["source"].is_null()).map(part).collect()
}

/// Every crate from a registry whose code ends up in `product` on `platform` (none: this one).
pub(crate) fn linked_into(product: &str, platform: Option<&str>) -> Result<Vec<Part>> {
    let platform = platform.map_or_else(host_platform, |platform| Ok(platform.to_owned()))?;
    let metadata = metadata(Some(&platform))?;
    let packages = metadata["packages"].as_array().context("cargo metadata has no packages")?;
    let nodes = metadata["resolve"]["nodes"].as_array().context("cargo metadata has no graph")?;
    let package = |id: &Value| packages.iter().find(|package| package["id"] == *id);
    let root = packages
        .iter()
        .find(|package| package["name"] == product)
        .with_context(|| format!("there is no crate {product}"))?;

    let mut reached = BTreeSet::new();
    let mut waiting = vec![&root["id"]];
    while let Some(id) = waiting.pop() {
        let Some(found) = package(id).filter(|found| !is_macro(found)) else { continue };
        if !reached.insert((found["name"].as_str(), found["version"].as_str(), id.as_str())) {
            continue;
        }
        let node =
            nodes.iter().find(|node| node["id"] == *id).context("a crate is not in the graph")?;
        let dependencies = node["deps"].as_array().into_iter().flatten();
        waiting.extend(dependencies.filter(|dep| is_linked(dep)).map(|dep| &dep["pkg"]));
    }
    reached
        .iter()
        .filter_map(|(_, _, id)| packages.iter().find(|package| package["id"].as_str() == *id))
        .filter(|package| !package["source"].is_null())
        .map(part)
        .collect()
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

fn part(package: &Value) -> Result<Part> {
    let text = |key: &str| package[key].as_str().unwrap_or_default().to_owned();
    let manifest = text("manifest_path");
    let folder = Path::new(&manifest).parent().context("a manifest without a folder")?;
    let authors = package["authors"].as_array().into_iter().flatten();
    Ok(Part {
        name: text("name"),
        version: text("version"),
        licence: text("license"),
        authors: authors.filter_map(Value::as_str).map(without_address).collect(),
        texts: licence_files(folder)?,
    })
}

/// `A. Author <a@example.org>` without the address.
fn without_address(author: &str) -> String {
    author.split('<').next().unwrap_or(author).trim().to_owned()
}

/// Names and texts of the licence files in `folder`.
pub(super) fn licence_files(folder: &Path) -> Result<Vec<(String, String)>> {
    let mut files = Vec::new();
    for entry in
        fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?
    {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let upper = name.to_uppercase();
        if FILE_NAMES.iter().any(|start| upper.starts_with(start)) && entry.path().is_file() {
            files.push((name, String::from_utf8_lossy(&fs::read(entry.path())?).into_owned()));
        }
    }
    files.sort();
    Ok(files)
}

fn metadata(platform: Option<&str>) -> Result<Value> {
    let mut command = cargo();
    command.args(["metadata", "--format-version", "1", "--locked"]);
    if let Some(platform) = platform {
        command.args(["--filter-platform", platform]);
    }
    serde_json::from_str(&output(&mut command)?).context("cargo metadata is not JSON")
}

fn host_platform() -> Result<String> {
    let printed = output(crate::shell::program("rustc").arg("-vV"))?;
    let host = printed.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc -vV names no host")?.to_owned())
}
