//! Import rings among the modules of a crate.
//!
//! Siblings are compared: of the modules declared by one parent, `a` depends on `b` if anything in `a`
//! or below it names anything in `b` or below it, whatever way the name takes (`crate::`, `super::`,
//! `self::`, an import, a parent's or another module's re-export, a glob, a macro's arguments). A ring
//! is a set of siblings that all depend on each other in a circle. A parent that declares, uses or
//! re-exports its children is in no ring with them, nor is a child that uses its parent's own items.
//! `#[cfg(test)]` code does not count. Methods are not names: a call finds its `impl` in any module.

mod components;
mod modules;
mod resolve;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::Result;
use serde_json::Value;

use self::components::components;
use self::modules::Crate;
use super::Findings;
use crate::metadata::own_packages;
use crate::shell::{root, say};

/// Prints the rings of every crate of both workspaces, and returns one finding a ring.
pub(super) fn check() -> Result<Findings> {
    let mut findings = Findings::new();
    for package in own_packages()? {
        for target in package["targets"].as_array().into_iter().flatten() {
            let Some(source) = shipped(target) else { continue };
            let name = package["name"].as_str().unwrap_or_default();
            let found = rings(&Crate::read(Path::new(source))?);
            findings.extend(found.iter().map(|ring| format!("{name}: {ring}")));
        }
    }
    say(&format!("rings: {}", if findings.is_empty() { "none" } else { "see below" }));
    Ok(findings)
}

/// The root file of a library or a program.
fn shipped(target: &Value) -> Option<&str> {
    const KINDS: [&str; 4] = ["lib", "rlib", "cdylib", "bin"];
    let mut kinds = target["kind"].as_array()?.iter().filter_map(Value::as_str);
    kinds.any(|kind| KINDS.contains(&kind)).then(|| target["src_path"].as_str())?
}

/// Where a module names another.
struct Witness {
    place: String,
    text: String,
}

/// The rings of a crate, each with its modules and for each pair a line that names the other.
fn rings(of: &Crate) -> Vec<String> {
    let mut levels = BTreeMap::<usize, BTreeMap<(usize, usize), Witness>>::new();
    for (from, module) in of.modules.iter().enumerate() {
        for mention in &module.mentions {
            for to in resolve::targets(of, from, &mention.segments) {
                let Some((parent, a, b)) = of.siblings(from, to) else { continue };
                let witness = || Witness {
                    place: format!("{}:{}", shown(&module.file), mention.line),
                    text: mention.segments.join("::"),
                };
                levels.entry(parent).or_default().entry((a, b)).or_insert_with(witness);
            }
        }
    }
    let mut found = vec![];
    for edges in levels.values() {
        let pairs: Vec<(usize, usize)> = edges.keys().copied().collect();
        for ring in components(&pairs) {
            found.push(describe(of, &ring, edges));
        }
    }
    found
}

fn describe(of: &Crate, ring: &[usize], edges: &BTreeMap<(usize, usize), Witness>) -> String {
    let names: Vec<String> = ring.iter().map(|&module| of.path(module)).collect();
    let mut text = format!("a ring of {}: {}", ring.len(), names.join(", "));
    for ((from, to), witness) in edges {
        if ring.contains(from) && ring.contains(to) {
            let Witness { place, text: named } = witness;
            // Writing to a string cannot fail.
            let _ = write!(text, "\n    {} -> {}: {place}: {named}", of.path(*from), of.path(*to));
        }
    }
    text
}

/// A file's path from the root of the repository.
fn shown(file: &Path) -> String {
    file.strip_prefix(root()).unwrap_or(file).display().to_string()
}

#[cfg(test)]
mod tests;
