//! `THIRD_PARTY_LICENSES`: the crates made by others in what is shipped, with the texts of their licences.
//!
//! `cargo deny` decides what may be linked; this gathers it. cargo-about does the same, and takes longer
//! to compile than everything that a first page needs. The npm package's bundler lists npm packages.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::files::{read, write_if_changed};
use crate::metadata::{BATCH, Build, Graph, WORKSPACE, is_ours, metadata, packages};
use crate::shell::{root, say};
use crate::toolchain::host;
use crate::wasm;

/// Beginnings of the names of licence files.
const FILE_NAMES: [&str; 4] = ["LICENSE", "LICENCE", "COPYING", "NOTICE"];

/// A crate made by others.
struct Part {
    name: String,
    licence: String,
    /// Who has the rights, if its own files do not say.
    holder: String,
    /// Its licence files.
    texts: Vec<String>,
}

/// The text of `THIRD_PARTY_LICENSES` of the npm package, with what any variant of it links.
pub(crate) fn of_npm_package() -> Result<String> {
    gather("the npm package setun", parts(WORKSPACE, &wasm::linked()?)?)
}

/// `cargo xtask licences`: the same for the `setun` command, and with `has_batch` for the `setun-batch`
/// command beside it, for whoever ships them.
pub(crate) fn run_command(to: &Path, features: &[String], has_batch: bool) -> Result<()> {
    let setun = command(features)?;
    let mut parts = parts(setun.manifest, &setun.linked()?)?;
    let mut product = "the command setun";
    if has_batch {
        let batch = batch_command(features)?;
        let known: BTreeSet<String> = parts.iter().map(|part| part.name.clone()).collect();
        let others = self::parts(batch.manifest, &batch.linked()?)?;
        parts.extend(others.into_iter().filter(|part| !known.contains(&part.name)));
        product = "the commands setun and setun-batch";
    }
    write_if_changed(&root().join(to), gather(product, parts)?.as_bytes())?;
    say(&format!("wrote {}", to.display()));
    Ok(())
}

/// The `setun` command for this machine, with features beside the default ones.
pub(crate) fn command(features: &[String]) -> Result<Build> {
    Ok(Build { features: features.to_vec(), ..Build::new("setun-cli", &host()?) })
}

/// The `setun-batch` command likewise, which has the server without a feature for it.
pub(crate) fn batch_command(features: &[String]) -> Result<Build> {
    let features = features.iter().filter(|feature| *feature != "serve").cloned().collect();
    Ok(Build { manifest: BATCH, features, ..Build::new("setun-batch", &host()?) })
}

/// Crates of the graph that are not of the workspace itself.
fn parts(manifest: &str, crates: &Graph) -> Result<Vec<Part>> {
    let metadata = metadata(manifest)?;
    let is_linked = |package: &&Value| {
        let key = |key: &str| package[key].as_str().unwrap_or_default().to_owned();
        !is_ours(package) && crates.contains_key(&(key("name"), key("version")))
    };
    packages(&metadata)?.iter().filter(is_linked).map(part).collect()
}

fn part(package: &Value) -> Result<Part> {
    let text = |key: &str| package[key].as_str().unwrap_or_default().to_owned();
    let manifest = text("manifest_path");
    let folder = Path::new(&manifest).parent().context("a manifest without a folder")?;
    // `A. Author <a@example.org>` without the address.
    let author = package["authors"][0].as_str().and_then(|author| author.split(" <").next());
    Ok(Part {
        name: format!("{} {}", text("name"), text("version")),
        licence: text("license"),
        holder: author.map_or_else(|| format!("the {} developers", text("name")), str::to_owned),
        texts: licence_files(folder)?,
    })
}

fn licence_files(folder: &Path) -> Result<Vec<String>> {
    let mut texts = vec![];
    for entry in folder.read_dir().with_context(|| format!("cannot list {}", folder.display()))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        if FILE_NAMES.iter().any(|start| name.starts_with(start)) && path.is_file() {
            texts.push(String::from_utf8_lossy(&fs::read(&path)?).into_owned());
        }
    }
    Ok(texts)
}

/// The list of all parts, and each text once, below the parts that it belongs to.
fn gather(product: &str, parts: Vec<Part>) -> Result<String> {
    let mut owners = BTreeMap::<String, Vec<String>>::new();
    let mut text = format!("Parts of {product} made by others\n\n");
    for part in parts {
        writeln!(text, "  {} ({})", part.name, part.licence)?;
        let texts = if part.texts.is_empty() { vec![standard_text(&part)?] } else { part.texts };
        for licence in texts {
            owners.entry(normal(&licence)).or_default().push(part.name.clone());
        }
    }
    text += "  the Rust standard library (MIT OR Apache-2.0)\n";
    for (licence, owners) in owners {
        writeln!(text, "\n{}\n{}\n\n{licence}", "-".repeat(80), owners.join(", "))?;
    }
    Ok(text)
}

/// Lines without trailing space, so that equal licences are equal.
fn normal(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n").trim_matches('\n').to_owned()
}

/// The text of a licence whose crate ships none: of MIT if that is among them, else of Apache-2.0 or
/// of BSD-3-Clause.
fn standard_text(part: &Part) -> Result<String> {
    if part.licence.contains("MIT") {
        let own = read("LICENSE-MIT")?;
        let (_, permission) =
            own.split_once("Permission is").context("LICENSE-MIT has no permission")?;
        return Ok(format!(
            "MIT License\n\nCopyright (c) {}\n\nPermission is{permission}",
            part.holder
        ));
    }
    if part.licence == "BSD-3-Clause" {
        let text = read("xtask/licences/BSD-3-Clause.txt")?;
        return Ok(format!("Copyright (c) {}\n\n{text}", part.holder));
    }
    ensure!(
        part.licence.contains("Apache-2.0"),
        "{} ships no text of its licence {}",
        part.name,
        part.licence
    );
    read("LICENSE-APACHE")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(licence: &str, texts: &[&str]) -> Part {
        let texts = texts.iter().map(|text| (*text).to_owned()).collect();
        Part {
            name: "part 1.0.0".into(),
            licence: licence.into(),
            holder: "A. Author".into(),
            texts,
        }
    }

    #[test]
    fn equal_texts_are_printed_once() {
        let parts = ["the same  \n", "the same\n"].map(|text| part("MIT", &[text]));
        let text = gather("x", parts.into()).unwrap();
        assert_eq!(text.matches("the same").count(), 1, "{text}");
    }

    #[test]
    fn a_part_without_files_gets_the_standard_text() {
        let text = gather("x", vec![part("MIT OR Apache-2.0", &[])]).unwrap();
        assert!(text.contains("Copyright (c) A. Author"), "{text}");
        assert!(text.contains("Permission is hereby granted"), "{text}");
        let error = gather("x", vec![part("Zlib", &[])]).unwrap_err().to_string();
        assert_eq!(error, "part 1.0.0 ships no text of its licence Zlib");
    }
}
