//! The bills compared with the compiler's work: cargo's list of units says what a build compiles for its target.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::{Product, crate_url, document, products};
use crate::metadata::{Build, Package};
use crate::shell::{output, say};

/// Features that the released commands have, all of which this system can resolve.
const RELEASED: [&str; 2] = ["vulkan", "cuda"];

/// Compares each bill with what its builds compile, and with itself: all parts are reached from the product.
pub(crate) fn check() -> Result<()> {
    for product in products(&RELEASED.map(ToOwned::to_owned))? {
        let bill = document(&product)?;
        let (listed, expected) = (listed(&bill), expected(&product)?);
        let only = |a: &BTreeSet<String>, b: &BTreeSet<String>| {
            a.difference(b).cloned().collect::<Vec<_>>().join(", ")
        };
        ensure!(
            listed == expected,
            "{}: listed and not compiled: [{}]; compiled and not listed: [{}]",
            product.name,
            only(&listed, &expected),
            only(&expected, &listed)
        );
        let reached = reached(&bill);
        ensure!(listed == reached, "{}: not reached: [{}]", product.name, only(&listed, &reached));
        say(&format!(
            "{}: {} components",
            product.name,
            bill["components"].as_array().map_or(0, Vec::len)
        ));
    }
    Ok(())
}

/// The crates and npm packages of a bill, the product among them.
fn listed(bill: &Value) -> BTreeSet<String> {
    let product = std::iter::once(&bill["metadata"]["component"]);
    let all = product.chain(bill["components"].as_array().into_iter().flatten());
    all.filter_map(|component| Some(component["purl"].as_str()?.to_owned())).collect()
}

fn expected(product: &Product) -> Result<BTreeSet<String>> {
    let mut all = BTreeSet::new();
    for build in &product.builds {
        all.extend(compiled(build)?.iter().map(crate_url));
    }
    all.extend(product.bundled.iter().map(|package| package.url.clone()));
    all.insert(format!("{}@{}", product.url, env!("CARGO_PKG_VERSION")));
    Ok(all)
}

/// The packages that a build compiles for its target. What runs while it compiles is for no target.
fn compiled(build: &Build) -> Result<BTreeSet<Package>> {
    let mut command = build.command("build");
    // Stable compilers know the flag, and refuse it from builds that are not Rust's own.
    command.args(["--unit-graph", "-Z", "unstable-options"]).env("RUSTC_BOOTSTRAP", "1");
    let graph: Value = serde_json::from_str(&output(&mut command)?).context("cargo's units")?;
    let units = graph["units"].as_array().context("cargo lists no units")?;
    let of_target = units.iter().filter(|unit| unit["platform"] == *build.target);
    of_target
        .map(|unit| {
            let id = unit["pkg_id"].as_str().unwrap_or_default();
            package_of(id).with_context(|| format!("no package in {id:?}"))
        })
        .collect()
}

/// Of `SOURCE#NAME@VERSION`, or of `SOURCE/NAME#VERSION`.
fn package_of(id: &str) -> Option<Package> {
    let (source, package) = id.rsplit_once('#')?;
    let folder = || source.rsplit_once('/').map(|(_, folder)| folder);
    let (name, version) = match package.split_once('@') {
        Some((name, version)) => (name, version),
        None => (folder()?, package),
    };
    Some((name.to_owned(), version.to_owned()))
}

/// Everything that the product of a bill depends on.
fn reached(bill: &Value) -> BTreeSet<String> {
    let uses = |url: &str| {
        let entries = bill["dependencies"].as_array().into_iter().flatten();
        let entry = entries.filter(|entry| entry["ref"] == *url);
        let on = entry.flat_map(|entry| entry["dependsOn"].as_array().into_iter().flatten());
        on.filter_map(|url| Some(url.as_str()?.to_owned())).collect::<Vec<_>>()
    };
    let mut waiting: Vec<String> =
        bill["metadata"]["component"]["bom-ref"].as_str().into_iter().map(str::to_owned).collect();
    let mut reached = BTreeSet::new();
    while let Some(url) = waiting.pop() {
        if reached.insert(url.clone()) {
            waiting.extend(uses(&url));
        }
    }
    reached.retain(|url| url.starts_with("pkg:"));
    reached
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn both_forms_of_a_package_are_read() {
        let expected = |name: &str, version: &str| Some((name.to_owned(), version.to_owned()));
        let registry = "registry+https://github.com/rust-lang/crates.io-index#half@2.7.1";
        assert_eq!(package_of(registry), expected("half", "2.7.1"));
        assert_eq!(package_of("path+file:///a/crates/setun#0.1.0"), expected("setun", "0.1.0"));
        assert_eq!(
            package_of("path+file:///a/shaders#setun-shaders@0.1.0"),
            expected("setun-shaders", "0.1.0")
        );
        assert_eq!(package_of("half"), None);
    }

    #[test]
    fn a_part_that_nothing_uses_is_not_reached() {
        let bill = json!({
            "metadata": { "component": { "bom-ref": "pkg:a", "purl": "pkg:a" } },
            "components": [{ "purl": "pkg:b" }, { "purl": "pkg:c" }],
            "dependencies": [{ "ref": "pkg:a", "dependsOn": ["pkg:b"] }, { "ref": "pkg:c", "dependsOn": [] }],
        });
        let set = |urls: &[&str]| urls.iter().map(ToString::to_string).collect::<BTreeSet<_>>();
        assert_eq!(listed(&bill), set(&["pkg:a", "pkg:b", "pkg:c"]));
        assert_eq!(reached(&bill), set(&["pkg:a", "pkg:b"]));
    }
}
