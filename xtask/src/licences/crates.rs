//! Crates, as cargo knows them.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use super::Part;
use crate::metadata::{self, Platform, is_ours, metadata_with, packages};

/// Beginnings of the names of licence files.
const FILE_NAMES: [&str; 4] = ["LICENSE", "LICENCE", "COPYING", "NOTICE"];

/// Every crate from a registry whose code ends up in one of `products` on `platform`, by name.
pub(super) fn linked_into(
    products: &[&str],
    platform: Platform,
    features: &[String],
) -> Result<Vec<Part>> {
    let metadata = metadata_with(platform, features)?;
    let packages = packages(&metadata)?;
    let mut linked = vec![];
    for product in products {
        let root = packages.iter().find(|package| package["name"] == *product);
        let root = root.with_context(|| format!("there is no crate {product}"))?;
        linked.extend(metadata::linked(&metadata, &root["id"])?);
    }
    let others = packages.iter().filter(|package| !is_ours(package));
    let mut parts: Vec<Part> = others
        .filter(|package| linked.contains(&&package["id"]))
        .map(part)
        .collect::<Result<_>>()?;
    parts.sort_by(|a, b| (&a.name, &a.version).cmp(&(&b.name, &b.version)));
    Ok(parts)
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
