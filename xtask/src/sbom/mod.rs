//! Software bills of materials in `CycloneDX`: everything linked into the crate, the command and the npm package.
//!
//! They hold no time and no random number: equal sources give equal files.

mod compiled;
mod npm;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use self::npm::Bundled;
use crate::embed_model::sha256;
use crate::files::{read, write_if_changed};
use crate::licences::{batch_command, command};
use crate::metadata::{Build, Graph, Package, WORKSPACE, is_ours, metadata, packages};
use crate::shell::{output, root, say};
use crate::toolchain::{host, rustc};
use crate::wasm;

pub(crate) use self::compiled::check;
pub(crate) use self::npm::check_bundle;

const SCHEMA: &str = "http://cyclonedx.org/schema/bom-1.6.schema.json";
const MODEL: &str = "crates/setun/embedded/stories.safetensors";

/// Something that is shipped.
struct Product {
    /// Of the file, before `.cdx.json`.
    name: &'static str,
    /// `CycloneDX`'s word for it.
    kind: &'static str,
    /// Its package URL without the version.
    url: &'static str,
    builds: Vec<Build>,
    /// npm packages in its scripts.
    bundled: Vec<Bundled>,
}

/// `cargo xtask sbom`: writes a file for each product into the folder `to`.
pub(crate) fn run_command(to: &Path, features: &[String]) -> Result<()> {
    for product in products(features)? {
        let path = root().join(to).join(format!("{}.cdx.json", product.name));
        let text = serde_json::to_string_pretty(&document(&product)?)? + "\n";
        write_if_changed(&path, text.as_bytes())?;
        say(&format!("wrote {}", path.display()));
    }
    Ok(())
}

/// The crate with all its features; the commands for this machine with `features` beside the default
/// ones; the npm package.
fn products(features: &[String]) -> Result<Vec<Product>> {
    let product = |name, kind, url, builds| Product { name, kind, url, builds, bundled: vec![] };
    let all = feature_names("setun")?;
    let library = Build { features: all, ..Build::new("setun", &host()?) };
    Ok(vec![
        product("setun-crate", "library", "pkg:cargo/setun", vec![library]),
        product("setun-command", "application", "pkg:cargo/setun-cli", vec![command(features)?]),
        product(
            "setun-batch-command",
            "application",
            "pkg:cargo/setun-batch",
            vec![batch_command(features)?],
        ),
        Product {
            bundled: npm::bundled()?,
            ..product("setun-npm", "library", "pkg:npm/setun", wasm::builds())
        },
    ])
}

fn feature_names(package: &str) -> Result<Vec<String>> {
    let metadata = metadata(WORKSPACE)?;
    let mut all = packages(&metadata)?.iter();
    let found = all.find(|found| found["name"] == package && is_ours(found));
    let features = found.and_then(|found| found["features"].as_object());
    Ok(features.with_context(|| format!("no package {package}"))?.keys().cloned().collect())
}

/// The bill of a product.
fn document(product: &Product) -> Result<Value> {
    let manifest = product.builds.first().map_or(WORKSPACE, |build| build.manifest);
    let metadata = metadata(manifest)?;
    let mut graph = Graph::new();
    for build in &product.builds {
        for (package, uses) in build.linked()? {
            graph.entry(package).or_default().extend(uses);
        }
    }
    let hashes = checksums(&read(manifest.replace("toml", "lock"))?);
    let found = packages(&metadata)?.iter().filter_map(|package| Some((key(package)?, package)));
    let crates = found.filter(|(key, _)| graph.contains_key(key));
    let mut components: Vec<Value> =
        crates.map(|(key, package)| of_crate(&key, package, hashes.get(&key))).collect();
    components.extend(product.bundled.iter().map(Bundled::component));
    components.push(model()?);
    let version = env!("CARGO_PKG_VERSION");
    let url = format!("{}@{version}", product.url);
    components.retain(|component| component["bom-ref"] != *url);
    Ok(json!({
        "$schema": SCHEMA,
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": product.kind, "bom-ref": url, "name": product.name, "version": version,
                "purl": url, "licenses": [{ "expression": "MIT OR Apache-2.0" }],
            },
            "properties": properties(product)?,
        },
        "components": components,
        "dependencies": dependencies(product, &url, &graph),
    }))
}

/// Everything that decides about what is linked, beside the lock files.
fn properties(product: &Product) -> Result<Vec<Value>> {
    let property =
        |name: &str, value: &str| json!({ "name": format!("setun:{name}"), "value": value });
    let compiler = output(rustc().arg("--version"))?;
    let mut properties = vec![property("compiler", compiler.trim())];
    for build in &product.builds {
        let Build { package, target, features, rustflags, .. } = build;
        let choices = format!("{package} {target} [{}] {rustflags}", features.join(","));
        properties.push(property("build", choices.trim_end()));
    }
    Ok(properties)
}

fn dependencies(product: &Product, url: &str, graph: &Graph) -> Vec<Value> {
    let mut uses: BTreeMap<String, BTreeSet<String>> = graph
        .iter()
        .map(|(package, uses)| (crate_url(package), uses.iter().map(crate_url).collect()))
        .collect();
    let own = uses.entry(url.to_owned()).or_default();
    let version = env!("CARGO_PKG_VERSION").to_owned();
    own.extend(product.builds.iter().map(|it| crate_url(&(it.package.clone(), version.clone()))));
    own.extend(product.bundled.iter().map(|it| it.url.clone()));
    own.insert(MODEL.to_owned());
    own.remove(url);
    uses.into_iter().map(|(url, on)| json!({ "ref": url, "dependsOn": on })).collect()
}

fn key(package: &Value) -> Option<Package> {
    Some((package["name"].as_str()?.to_owned(), package["version"].as_str()?.to_owned()))
}

fn crate_url((name, version): &Package) -> String {
    format!("pkg:cargo/{name}@{version}")
}

fn of_crate(key: &Package, package: &Value, hash: Option<&String>) -> Value {
    // Older manifests separate licences by a slash.
    let licence = package["license"].as_str().unwrap_or_default().replace('/', " OR ");
    let url = crate_url(key);
    let hashes: Vec<Value> =
        hash.iter().map(|hash| json!({ "alg": "SHA-256", "content": hash })).collect();
    json!({
        "type": "library", "bom-ref": url, "name": key.0, "version": key.1, "purl": url,
        "licenses": [{ "expression": licence }], "hashes": hashes,
    })
}

/// The embedded model, which every product may carry.
fn model() -> Result<Value> {
    let bytes = fs::read(root().join(MODEL)).with_context(|| format!("cannot read {MODEL}"))?;
    Ok(json!({
        "type": "machine-learning-model", "bom-ref": MODEL, "name": "setun-stories",
        "version": env!("CARGO_PKG_VERSION"),
        "licenses": [{ "expression": "MIT OR Apache-2.0" }],
        "hashes": [{ "alg": "SHA-256", "content": sha256(&bytes) }],
    }))
}

/// Checksums of a lock file's packages; this workspace's have none.
fn checksums(lock: &str) -> BTreeMap<Package, String> {
    let value = |entry: &str, name: &str| {
        let line = entry.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = \""));
        line.map(|value| value.trim_end_matches('"').to_owned())
    };
    let entries = lock.split("[[package]]");
    let checksum = |entry| {
        Some(((value(entry, "name")?, value(entry, "version")?), value(entry, "checksum")?))
    };
    entries.filter_map(checksum).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_file_has_a_checksum_for_each_package_of_a_registry() {
        let lock = "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nchecksum = \"00ff\"\n\
                    dependencies = [\n \"b\",\n]\n\n[[package]]\nname = \"setun\"\nversion = \"0.1.0\"\n";
        let expected = BTreeMap::from([(("a".into(), "1.0.0".into()), "00ff".into())]);
        assert_eq!(checksums(lock), expected);
    }

    #[test]
    fn a_licence_is_an_expression() {
        let package = json!({ "license": "MIT/Apache-2.0" });
        let component = of_crate(&("a".into(), "1.0.0".into()), &package, None);
        assert_eq!(component["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert_eq!(component["purl"], "pkg:cargo/a@1.0.0");
    }

    #[test]
    fn dependencies_begin_with_the_product() {
        let bundled = Bundled { url: "pkg:npm/b@2.0.0".into(), ..Bundled::default() };
        let builds = vec![Build::new("setun-wasm", "wasm32-unknown-unknown")];
        let product = Product {
            name: "x",
            kind: "library",
            url: "pkg:npm/setun",
            builds,
            bundled: vec![bundled],
        };
        let of = |name: &str| (name.to_owned(), env!("CARGO_PKG_VERSION").to_owned());
        let graph = Graph::from([(of("setun-wasm"), BTreeSet::new())]);
        let listed = dependencies(&product, "pkg:npm/setun@1.0.0", &graph);
        let module = crate_url(&of("setun-wasm"));
        assert_eq!(listed[0], json!({ "ref": module, "dependsOn": [] }));
        let on = json!([MODEL, module, "pkg:npm/b@2.0.0"]);
        assert_eq!(listed[1], json!({ "ref": "pkg:npm/setun@1.0.0", "dependsOn": on }));
    }
}
