//! npm packages whose code goes into ours.

use anyhow::{Context, Result};
use serde_json::Value;

use super::Part;
use super::crates::licence_files;
use crate::files::{read, under};
use crate::shell::root;

/// The dependencies that the sources in `folder/src` import by value: the bundler copies them.
pub(super) fn bundled(folder: &str) -> Result<Vec<Part>> {
    let manifest: Value = serde_json::from_str(&read(format!("{folder}/package.json"))?)?;
    let mut sources = String::new();
    for file in under(&root().join(folder).join("src"))? {
        sources += &read(&file)?;
    }
    let mut parts = Vec::new();
    for kind in ["dependencies", "devDependencies"] {
        for name in manifest[kind].as_object().into_iter().flat_map(|map| map.keys()) {
            if imports(&sources, name) {
                parts.push(part(folder, name)?);
            }
        }
    }
    Ok(parts)
}

/// True if a line of `sources` imports the package `name`, other than its types.
fn imports(sources: &str, name: &str) -> bool {
    let exact = [format!("\"{name}\""), format!("'{name}'")];
    let below = [format!("\"{name}/"), format!("'{name}/")];
    let named = |line: &str| exact.iter().chain(&below).any(|text| line.contains(text.as_str()));
    sources.lines().any(|line| {
        let line = line.trim_start();
        let imported = line.contains("from ") || line.contains("import");
        imported && !line.starts_with("import type") && !line.starts_with("//") && named(line)
    })
}

fn part(folder: &str, name: &str) -> Result<Part> {
    let path = root().join(folder).join("node_modules").join(name);
    let manifest: Value = serde_json::from_str(&read(path.join("package.json"))?)?;
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let author = text(&manifest["author"]).or_else(|| text(&manifest["author"]["name"]));
    Ok(Part {
        name: name.to_owned(),
        version: text(&manifest["version"]).unwrap_or_default(),
        licence: text(&manifest["license"]).with_context(|| format!("{name} names no licence"))?,
        authors: author.into_iter().collect(),
        texts: licence_files(&path)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imports_by_value_are_found() {
        let cases = [
            ("import { simd } from \"wasm-feature-detect\";", true),
            ("} from 'wasm-feature-detect';", true),
            ("const detect = await import(\"wasm-feature-detect\");", true),
            ("import type { X } from \"wasm-feature-detect\";", false),
            ("import { simd } from \"wasm-feature-detect-2\";", false),
            ("// from \"wasm-feature-detect\"", false),
        ];
        for (source, expected) in cases {
            assert_eq!(imports(source, "wasm-feature-detect"), expected, "{source}");
        }
    }
}
