//! Node and npm: the packages of `npm/` and `web/`, and their scripts.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::files::read;
use crate::machine::NODE;
use crate::shell::{find_program, output, program, root, run, say};
use crate::stamp::{Inputs, if_changed};

/// Oldest version of Node that the package and its build support.
const OLDEST_NODE: u32 = 20;

/// `node`, checked to be new enough.
pub(crate) fn node() -> Result<Command> {
    let path = find_program("node").ok_or_else(|| NODE.error())?;
    let version = output(program(&path).arg("--version"))?;
    let major = version.trim().trim_start_matches('v').split('.').next().unwrap_or_default();
    let major: u32 = major.parse().with_context(|| format!("node --version says {version:?}"))?;
    ensure!(major >= OLDEST_NODE, "Node {major} is here. {:#}", NODE.error());
    Ok(program(path))
}

/// `npm` in `folder`, quiet about funding and news.
pub(crate) fn npm(folder: &str) -> Result<Command> {
    node()?;
    let name = if cfg!(windows) { "npm.cmd" } else { "npm" };
    let mut command = program(name);
    command
        .current_dir(root().join(folder))
        .env("npm_config_audit", "false")
        .env("npm_config_fund", "false")
        .env("npm_config_update_notifier", "false");
    Ok(command)
}

/// Installs the packages that `folder`'s lock file names, unless they are there.
pub(crate) fn install(folder: &str) -> Result<()> {
    let path = root().join(folder);
    let inputs = Inputs::default()
        .files([path.join("package.json"), path.join("package-lock.json")])
        .with_context(|| format!("{folder}/ needs package.json and package-lock.json"))?;
    let name = format!("npm-{}", folder.replace('/', "-"));
    if_changed(&name, &[&path.join("node_modules")], &inputs, || {
        say(&format!("installing the npm packages of {folder}/"));
        // `npm ci` refuses a lock file that lacks the optional packages of other platforms, which npm leaves
        // out where it cannot see them. `cargo xtask tidy` checks what it would. No package runs a script.
        run(npm(folder)?.args(["install", "--no-save", "--ignore-scripts", "--loglevel=error"]))
    })?;
    Ok(())
}

/// The scripts that `folder`'s package.json has.
pub(crate) fn scripts(folder: &str) -> Result<Vec<String>> {
    let manifest = Path::new(folder).join("package.json");
    let manifest: Value = serde_json::from_str(&read(&manifest)?)
        .with_context(|| format!("{} is not JSON", manifest.display()))?;
    Ok(manifest["scripts"].as_object().into_iter().flat_map(|map| map.keys().cloned()).collect())
}
