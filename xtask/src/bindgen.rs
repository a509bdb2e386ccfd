//! The binding tool: `xtask/bindgen`, compiled once and kept.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::files::read;
use crate::shell::{cargo, output, program, root, run, say, target};

/// A workspace of its own.
pub(crate) const MANIFEST: &str = "xtask/bindgen/Cargo.toml";

/// The compiled tool.
pub(crate) struct Bindgen {
    path: PathBuf,
}

impl Bindgen {
    /// Compiles the tool, or finds it compiled.
    pub(crate) fn ready() -> Result<Self> {
        same_version(&read("Cargo.lock")?, &read("xtask/bindgen/Cargo.lock")?)?;
        let folder = target().join("bindgen");
        let path = folder.join(format!("release/setun-bindgen{}", std::env::consts::EXE_SUFFIX));
        if !path.exists() {
            say("compiling the binding tool (once; about two minutes)");
        }
        run(cargo()
            .args(["build", "--release", "--locked", "--quiet"])
            .arg("--manifest-path")
            .arg(root().join(MANIFEST))
            .env("CARGO_TARGET_DIR", &folder))?;
        Ok(Self { path })
    }

    /// The file of the tool: what depends on it is made anew when it changes.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the bindings of `module` into `folder`.
    pub(crate) fn bind(&self, module: &Path, folder: &Path) -> Result<()> {
        run(program(&self.path).arg("bind").arg(module).arg(folder))
    }

    /// Names the functions of `module` in the order of their bodies.
    pub(crate) fn rank(&self, module: &Path) -> Result<()> {
        run(program(&self.path).arg("rank").arg(module))
    }

    /// Makes a trap of each function of `module` that has one of `parts` in its name.
    pub(crate) fn snip(&self, module: &Path, parts: &[&str]) -> Result<()> {
        run(program(&self.path).arg("snip").arg(module).args(parts))
    }

    /// What `module` contains: instructions by proposal, `relaxed_dots`, `memory`.
    pub(crate) fn scan(&self, module: &Path) -> Result<Value> {
        let report = output(program(&self.path).arg("scan").arg(module))?;
        serde_json::from_str(&report).context("the binding tool's report is not JSON")
    }
}

/// The tool must speak the dialect of the crate that the module is compiled with.
pub(crate) fn same_version(workspace_lock: &str, tool_lock: &str) -> Result<()> {
    let crate_version = locked_version(workspace_lock, "wasm-bindgen")?;
    let tool_version = locked_version(tool_lock, "wasm-bindgen-cli-support")?;
    ensure!(
        crate_version == tool_version,
        "wasm-bindgen is {crate_version} in Cargo.lock, but the tool in xtask/bindgen has \
         wasm-bindgen-cli-support {tool_version}: make them equal"
    );
    Ok(())
}

fn locked_version<'a>(lock: &'a str, name: &str) -> Result<&'a str> {
    let entry = format!("name = \"{name}\"\nversion = \"");
    let (_, rest) =
        lock.split_once(&entry).with_context(|| format!("no {name} in the lock file"))?;
    let (version, _) = rest.split_once('"').context("the lock file is cut off")?;
    Ok(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_must_be_equal() {
        let lock = |name: &str, version: &str| {
            format!("[[package]]\nname = \"{name}\"\nversion = \"{version}\"\n")
        };
        let workspace = lock("wasm-bindgen", "0.2.130");
        let equal = lock("wasm-bindgen-cli-support", "0.2.130");
        let other = lock("wasm-bindgen-cli-support", "0.2.129");
        assert!(same_version(&workspace, &equal).is_ok());
        let error = same_version(&workspace, &other).unwrap_err().to_string();
        assert!(error.contains("0.2.130") && error.contains("0.2.129"), "{error}");
        assert!(same_version("", &equal).is_err());
    }
}
