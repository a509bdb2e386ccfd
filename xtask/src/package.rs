//! The npm package: WebAssembly, scripts, embedded model, licences; one tarball.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

use crate::files::{tracked, under, write_if_changed};
use crate::licences;
use crate::node::{install, npm, scripts};
use crate::sbom;
use crate::shell::{in_ci, output, root, run, say};
use crate::sizes;
use crate::stamp::{Inputs, if_changed};
use crate::variant::Variant;
use crate::wasm;

/// The embedded model in the tree, and its copy in the package.
const MODEL: [&str; 2] =
    ["crates/setun/embedded/stories.safetensors", "npm/embedded/stories.safetensors"];

/// Largest embedded model.
const MODEL_BUDGET: u64 = 4_000_000;

/// Where the tarball is left.
pub(crate) fn tarball() -> PathBuf {
    root().join("target/npm/setun.tgz")
}

/// `cargo xtask package`: builds [`tarball`] and prints its sizes.
pub(crate) fn run_command() -> Result<()> {
    println!("{}", build()?);
    Ok(())
}

/// Builds [`tarball`] with all variants that can be built here, checks sizes and licences, and
/// returns the table of sizes.
pub(crate) fn build() -> Result<String> {
    build_with(&[])
}

/// [`build`] with the variants named, or with all if there are none.
pub(crate) fn build_with(variants: &[Variant]) -> Result<String> {
    let variants = wasm::build_variants(variants, in_ci())?;
    copy_model()?;
    let licences = licences::of_npm_package()?;
    write_if_changed(&root().join("npm/THIRD_PARTY_LICENSES"), licences.as_bytes())?;
    install("npm")?;
    let dist = root().join("npm/dist");
    let made = if_changed("npm-package", &[&tarball(), &dist], &inputs()?, || {
        say("building the npm package");
        run(npm("npm")?.args(["run", "--silent", "build"]))?;
        sbom::check_bundle(&dist)?;
        pack()
    })?;
    if made {
        say("packed target/npm/setun.tgz");
    }
    // Compressing as hard as a server would takes a while.
    let table = root().join("target/npm/sizes.md");
    let measured = Inputs::default().files([tarball()])?.word(sizes::budgets());
    if_changed("npm-sizes", &[&table], &measured, || {
        say("measuring what a page downloads");
        write_if_changed(&table, sizes::table(&dist, &variants)?.as_bytes())
    })?;
    Ok(fs::read_to_string(table)?)
}

/// The files of `npm/` that git knows, and those that this tool puts there.
fn inputs() -> Result<Inputs> {
    let folder = root().join("npm");
    let known = tracked()?.into_iter().filter(|path| path.starts_with("npm"));
    let mut files: Vec<PathBuf> = known.map(|path| root().join(path)).collect();
    for folder in Variant::ALL
        .map(wasm::folder)
        .into_iter()
        .chain(wasm::Module::ALL.map(wasm::Module::folder))
    {
        files.extend(under(&folder)?);
    }
    files.extend(under(&folder.join("embedded"))?);
    files.push(folder.join("THIRD_PARTY_LICENSES"));
    Inputs::default().files(files)
}

/// The package carries the model as a file of its own; the tree holds it once.
fn copy_model() -> Result<()> {
    let [from, to] = MODEL.map(|path| root().join(path));
    let model = fs::read(&from).with_context(|| format!("cannot read {}", from.display()))?;
    let size = u64::try_from(model.len())?;
    ensure!(size <= MODEL_BUDGET, "the embedded model is {size} bytes of {MODEL_BUDGET}");
    write_if_changed(&to, &model)
}

fn pack() -> Result<()> {
    let folder = root().join("target/npm");
    fs::create_dir_all(&folder)?;
    if scripts("npm")?.iter().any(|script| script == "pack:tarball") {
        run(npm("npm")?.args(["run", "--silent", "pack:tarball"]))?;
    } else {
        let mut command = npm("npm")?;
        let name = output(command.args(["pack", "--silent", "--pack-destination"]).arg(&folder))?;
        let name = name.lines().last().context("npm pack names no tarball")?;
        fs::rename(folder.join(name), tarball())?;
    }
    ensure!(tarball().is_file(), "npm/ packed no target/npm/setun.tgz");
    Ok(())
}
