//! The stages of `cargo xtask test` in order: the quickest to fail come first.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::seed::is_full;
use super::stage::{Stage, count};
use super::totals::Totals;
use super::{
    clients, cuda, dependencies, deploy, examples, fuzz, gpu, loom, memory, neon, programs, python,
    releases, sql, systems, workspace,
};
use crate::bindgen;
use crate::browser;
use crate::demo;
use crate::files::{under, write_if_changed};
use crate::metadata::{BATCH, is_ours, metadata, packages};
use crate::node::{install, node, npm};
use crate::package;
use crate::shell::{
    WORKSPACE_TESTS, built_with_tests, cargo, in_ci, output, program, run, target, typed,
};
use crate::tidy;
use crate::wasm;

/// Scripts of npm/package.json that need no package, and those that test the packed tarball.
const NPM_CHECKS: [&str; 2] = ["check", "test"];
const NPM_PACKED_TESTS: [&str; 2] = ["test:packaging", "test:browser"];

/// The script that compares the packed tarball with the command.
const NPM_EQUALITY: &str = "test:equality";

/// Crates whose code an optimiser could break, and the engine and the grammars for their long tests: the
/// others hold no number.
const OPTIMISED: [&str; 8] = [
    "setun-ops",
    "setun-text",
    "setun-grammar",
    "setun-cpu",
    "setun-model",
    "setun-engine",
    "setun",
    "setun-tests",
];

/// Part of the names of ignored tests that write what others read: no check runs them.
const WRITERS: &str = "rewrite_fixture";

/// Time of random requests to one engine.
const SOAK_MINUTES: &str = "30";

/// Scripts of web/package.json.
const WEB_TESTS: [&str; 2] = ["check", "test"];

/// Which stages there are.
#[derive(Default)]
pub(super) struct Selection {
    /// Also those that only a full check has.
    pub(super) is_full: bool,
    /// Also those that take hours.
    pub(super) is_long: bool,
    /// For each fuzz target.
    pub(super) minutes: Option<f64>,
}

/// The stages of a selection; one whose subject is not there says so.
pub(super) fn all(selection: &Selection) -> Result<Vec<Stage>> {
    let mut stages = vec![
        Stage::new("format", |_| format()),
        Stage::new("tidy", |_| tidy::run()),
        dependencies::stage(),
        releases::crate_packages(),
        Stage::new("lints", |_| lints()),
        Stage::new("crates", crates),
        Stage::new("binding tool", |totals| {
            run(binding_tool(&["clippy", "--release", "--all-targets"])
                .args(["--", "-D", "warnings"]))?;
            count(&mut binding_tool(&["test", "--release"]), totals)
        }),
        examples::stage(),
        clients::stage(),
        deploy::stage(),
        python::stage(),
        sql::stage(),
    ];
    if selection.is_long {
        stages.extend(long()?);
    }
    if selection.is_full {
        stages.push(fuzz::stage(selection.is_long, selection.minutes));
    }
    stages.extend(npm_stages("npm", &NPM_CHECKS));
    stages.push(kernels());
    stages.extend(neon::stages());
    stages.extend(gpu::stages());
    stages.push(systems::stage());
    // Both wait for the builds of `crates`, so what need not wait comes before them.
    stages.push(Stage::new("features", |_| features()));
    stages.push(Stage::new("documentation", |_| documentation()));
    stages.push(Stage::new("package", |_| package::build().map(|table| println!("{table}"))));
    stages.extend(npm_stages("npm", &NPM_PACKED_TESTS));
    stages.push(cuda::stage());
    stages.push(shaders());
    // The page itself, built on the tarball, tells the stories that the command tells.
    stages.push(Stage::new("page", |_| demo::equals_the_command()));
    stages.extend(npm_stages("npm", &[NPM_EQUALITY]));
    stages.extend(npm_stages("web", &WEB_TESTS));
    Ok(stages)
}

/// The stages of a long check alone.
fn long() -> Result<Vec<Stage>> {
    let mut stages = vec![
        Stage::new("crates release", |totals| {
            let mut command = cargo();
            command.args(["test", "--locked", "--no-fail-fast", "--release"]);
            command.args(OPTIMISED.iter().flat_map(|name| ["--package", name]));
            command.args(["--features", "setun/config"]).env("SETUN_LONG", "1");
            count(command.args(["--", "--include-ignored", "--skip", WRITERS]), totals)
        }),
        Stage::new("processes", |totals| {
            let cli = ["test", "--locked", "--package", "setun-cli", "--test", "cli"];
            count(cargo().args(cli).args(["--", "--ignored", "--skip", deploy::REPLICAS]), totals)
        }),
        Stage::new("soak", |totals| {
            let soak =
                ["test", "--locked", "--release", "--package", "setun-tests", "--test", "soak"];
            count(cargo().args(soak).env("SETUN_SOAK_MINUTES", SOAK_MINUTES), totals)
        }),
    ];
    stages.extend(memory::stages()?);
    stages.push(loom::stage());
    stages.push(clients::rust::stage());
    stages.push(dependencies::advisories());
    stages.extend(releases::long_stages());
    Ok(stages)
}

/// All tests of the workspace.
fn crates(totals: &mut Totals) -> Result<()> {
    let tests = || {
        let mut command = cargo();
        command.args(WORKSPACE_TESTS);
        command
    };
    programs::test(tests, totals)
}

fn format() -> Result<()> {
    run(cargo().args(["fmt", "--all", "--check"]))?;
    let manifests =
        [BATCH, bindgen::MANIFEST, fuzz::MANIFEST, loom::MANIFEST, clients::rust::MANIFEST];
    for manifest in manifests {
        let mut command = cargo();
        command.args(["fmt", "--all", "--check", "--manifest-path", manifest]);
        run(command.args(["--", "--config-path", "rustfmt.toml"]))?;
    }
    Ok(())
}

fn lints() -> Result<()> {
    run(workspace::clippy().args(["--all-targets", "--quiet", "--", "-D", "warnings"]))?;
    wasm::lints()
}

/// Cargo for the binding tool, which is a workspace of its own.
fn binding_tool(arguments: &[&str]) -> Command {
    let mut command = cargo();
    command
        .args(arguments)
        .args(["--quiet", "--locked", "--manifest-path", bindgen::MANIFEST])
        .env("CARGO_TARGET_DIR", target().join("bindgen"));
    command
}

/// Every package compiles alone, with its default features and with none. With others they are compiled in other
/// stages; a full check compiles with each of them alone.
fn features() -> Result<()> {
    let metadata = metadata()?;
    for package in packages(&metadata)?.iter().filter(|package| is_ours(package)) {
        let name = package["name"].as_str().unwrap_or_default();
        let features = package["features"].as_object();
        let features: Vec<&str> =
            features.into_iter().flat_map(|map| map.keys().map(String::as_str)).collect();
        if features.is_empty() {
            continue;
        }
        let check = |more: &[&str]| {
            let mut command = cargo();
            command.args(["check", "--locked", "--quiet", "--package", name]);
            without_a_word(command.args(more))
        };
        check(&["--no-default-features"])?;
        if features.contains(&"default") {
            check(&[])?;
        }
        if is_full() {
            let code = code(package)?;
            let mut alone = features.into_iter().filter(|feature| is_own(name, feature, &code));
            alone.try_for_each(|it| check(&["--no-default-features", "--features", it]))?;
        }
    }
    Ok(())
}

/// Features for interfaces of other systems, with which the stage `systems` compiles this package.
const ELSEWHERE: (&str, [&str; 2]) = ("setun-gpu", ["dx12", "metal"]);

/// True for a feature that the package's code mentions. Another is passed on to other packages, where it is looked at.
fn is_own(package: &str, feature: &str, code: &str) -> bool {
    let is_elsewhere = package == ELSEWHERE.0 && ELSEWHERE.1.contains(&feature);
    !is_elsewhere && code.contains(&format!("feature = \"{feature}\""))
}

/// Runs a command that is quiet but for warnings and errors, and takes no warning.
fn without_a_word(command: &mut Command) -> Result<()> {
    let output = command.output().with_context(|| format!("cannot start `{}`", typed(command)))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success() && said.is_empty(), "`{}` says:\n{said}", typed(command));
    Ok(())
}

/// All Rust code of a package.
fn code(package: &serde_json::Value) -> Result<String> {
    let manifest = Path::new(package["manifest_path"].as_str().unwrap_or_default());
    let folder = manifest.parent().context("a package in a folder")?;
    let files = under(folder)?;
    let is_code = |path: &&PathBuf| path.extension().is_some_and(|extension| extension == "rs");
    let texts = files.iter().filter(is_code).map(fs::read_to_string);
    Ok(texts.collect::<Result<Vec<_>, _>>()?.concat())
}

fn documentation() -> Result<()> {
    let mut command = workspace::documentation();
    command.args(["--no-deps", "--quiet"]);
    // The command's pages would replace the library's: both are called setun.
    command.args(["--exclude", "setun-cli"]);
    run(command.env("RUSTDOCFLAGS", "-D warnings"))
}

/// A stage for each of these scripts of a folder's package.json.
fn npm_stages(folder: &'static str, scripts: &[&'static str]) -> impl Iterator<Item = Stage> {
    scripts.iter().map(move |&script| {
        Stage::new(format!("{folder} {script}"), move |totals| npm_script(folder, script, totals))
    })
}

fn npm_script(folder: &str, script: &str, totals: &mut Totals) -> Result<()> {
    install(folder)?;
    let mut command = npm(folder)?;
    command.args(["run", "--silent", script]);
    if script.starts_with("test:") || folder == "web" {
        command.env("CHROME", browser::chrome()?).env("FIREFOX", browser::firefox()?);
    }
    if script == NPM_EQUALITY || (folder, script) == ("web", "test") {
        command.env("SETUN_COMMAND", built_with_tests()?.join("setun"));
    }
    if script == NPM_EQUALITY {
        command.envs(browser::webkit_driver()?.map(|driver| ("WEBKIT_DRIVER", driver)));
    }
    count(&mut command, totals)
}

/// The kernels' checks as WebAssembly, in Node and Chromium.
fn kernels() -> Stage {
    Stage::new("kernels", |totals| {
        install("npm")?;
        let modules = wasm::build_checks(in_ci())?;
        let modules =
            modules.iter().map(|(variant, path)| format!("{}={}", variant.name(), path.display()));
        let mut command = node()?;
        command.env("CHROME", browser::chrome()?).arg("xtask/wasm-tests.mjs").args(modules);
        count(&mut command, totals)
    })
}

/// Every variant of every GPU kernel, compiled by Chromium.
fn shaders() -> Stage {
    Stage::new("shaders", |totals| {
        install("npm")?;
        let mut export = program(built_with_tests()?.join("examples/wgsl"));
        let list = target().join("xtask/wgsl.json");
        write_if_changed(&list, output(&mut export)?.as_bytes())?;
        let mut command = node()?;
        command.env("CHROME", browser::chrome()?).arg("xtask/shader-tests.mjs").arg(list);
        count(&mut command, totals)
    })
}
