//! The stages of `cargo xtask test` in order, the quickest to fail first, and the work of the small ones.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::stage::Kind::{Full, Long};
use super::stage::{Check, Stage, stage};
use super::workspace::{self, cargo, elsewhere};
use super::{
    clients, cuda, dependencies, deploy, examples, fuzz, gpu, memory, neon, programs, python, sql,
    systems,
};
use crate::files::{under, write_if_changed};
use crate::metadata::{BATCH, WORKSPACE, is_ours, is_published, metadata, packages};
use crate::node::{install, node, npm};
use crate::shell::{
    built_with_tests, find_program, in_ci, output, program, run, say, target, typed,
};
use crate::{bindgen, browser, crate_packages, demo, package, reproduce, tidy, wasm};

/// Lanes. The first has all stages that are in no other. At a time they share no program but browsers and the command
/// in `target/debug`, which the first lane alone builds: stages of others have folders of their own, or only check
/// what others build. Cargo lets them wait where it must.
pub(super) const LANES: usize = 4;

/// Stages that must end before one that takes the command or an example, and before one that takes the tarball.
const COMMAND: &[&str] = &["crates"];
const TARBALL: &[&str] = &["package", "crates"];

/// All stages. The name of one of npm is that of a folder and a script of its package.json.
pub(super) const ALL: &[Stage] = &[
    stage("format", format),
    stage("tidy", |_| tidy::run()),
    stage("dependencies", dependencies::test).lane(2),
    stage("crate packages", |_| crate_packages::check(false)).lane(2),
    stage("lints", lints),
    stage("crates", programs::test),
    stage("binding tool", binding_tool).lane(1),
    stage("examples", examples::test),
    stage("clients", clients::test).lane(3).after(COMMAND),
    stage("deploy", deploy::test).lane(3).after(COMMAND).inputs(&deploy::INPUTS),
    stage("python", python::test).inputs(&python::INPUTS),
    stage("sql", sql::test).inputs(&sql::INPUTS),
    stage("crates release", optimised).of(Long),
    stage("processes", processes).of(Long),
    stage("soak", soak).of(Long),
    stage("miri", memory::miri).of(Long),
    stage("address", memory::address).of(Long),
    stage("thread", memory::thread).of(Long),
    stage("valgrind", memory::valgrind).of(Long),
    stage("loom", loom).of(Long),
    stage("clients rust", clients::rust::test).of(Long),
    stage("advisories", dependencies::advisories).of(Long),
    stage("crates compiled", |_| crate_packages::check(true)).of(Long),
    stage("semver", semver).of(Long),
    stage("reproduce", |check| reproduce::check().map(|files| check.totals.passed += files))
        .of(Long),
    stage("fuzz", fuzz::test).of(Full).lane(2),
    stage("npm check", npm_script).lane(1),
    stage("npm test", npm_script).lane(1),
    // Another processor runs these kernels itself, in the stage `crates`.
    #[cfg(not(target_arch = "aarch64"))]
    stage("neon", neon::test).lane(2),
    #[cfg(not(target_arch = "aarch64"))]
    stage("neon tests", neon::test_all).lane(2).inputs(&neon::INPUTS),
    stage("gpu", gpu::test),
    stage("gpu models", gpu::test_models).inputs(&gpu::MODEL_INPUTS),
    stage("systems", |_| systems::test()).lane(2),
    // Both wait for the builds of `crates`, so what need not wait comes before them.
    stage("features", features).lane(2),
    stage("documentation", documentation).lane(2),
    stage("kernels", kernels).lane(2),
    stage("package", |_| package::build().map(|table| println!("{table}"))).lane(1),
    stage("npm test:packaging", npm_script).lane(1),
    stage("npm test:browser", npm_script).lane(1),
    stage("cuda", cuda::test).lane(2).inputs(&cuda::INPUTS),
    stage("shaders", shaders).lane(3).after(COMMAND),
    // The page itself, built on the tarball, tells the stories that the command tells.
    stage("page", |_| demo::equals_the_command()).lane(3).after(TARBALL),
    stage(NPM_EQUALITY, npm_script).lane(3).after(TARBALL),
    stage("web check", npm_script).lane(3),
    stage("web test", npm_script).lane(3),
];

/// It compares the packed tarball with the command.
const NPM_EQUALITY: &str = "npm test:equality";

/// Crates whose code an optimiser could break, and the engine and the grammars for their long tests: the others hold
/// no number.
const OPTIMISED: &str = "test --locked --no-fail-fast --release --features setun/config --package setun-ops \
                         --package setun-text --package setun-grammar --package setun-cpu --package setun-model \
                         --package setun-engine --package setun --package setun-tests";

/// Part of the names of ignored tests that write what others read: no check runs them.
const WRITERS: &str = "rewrite_fixture";

/// Time of random requests to one engine.
const SOAK_MINUTES: &str = "30";

const SEMVER: &str = "cargo-semver-checks";
const NO_SEMVER: &str = "needs cargo-semver-checks: cargo install cargo-semver-checks --locked";

/// A workspace of its own: orders of threads, by the model checker loom.
const LOOM: &str = "fuzz/loom/Cargo.toml";

fn format(_: &mut Check) -> Result<()> {
    let manifests =
        ["Cargo.toml", BATCH, bindgen::MANIFEST, fuzz::MANIFEST, LOOM, clients::rust::MANIFEST];
    manifests.into_iter().try_for_each(|manifest| {
        let check = format!("fmt --all --check --manifest-path {manifest}");
        run(cargo(&check).args(["--", "--config-path", "rustfmt.toml"]))
    })
}

fn lints(_: &mut Check) -> Result<()> {
    run(workspace::clippy().args(["--all-targets", "--quiet", "--", "-D", "warnings"]))?;
    wasm::lints()
}

fn binding_tool(check: &mut Check) -> Result<()> {
    let tool = |line| elsewhere(line, bindgen::MANIFEST, "bindgen");
    run(&mut tool("clippy --quiet --release --all-targets -- -D warnings"))?;
    check.count(&mut tool("test --quiet --release"))
}

fn optimised(check: &mut Check) -> Result<()> {
    let mut tests = cargo(OPTIMISED);
    tests.args(["--", "--include-ignored", "--skip", WRITERS]);
    check.count(tests.env("SETUN_LONG", "1"))
}

fn processes(check: &mut Check) -> Result<()> {
    let mut tests = cargo("test --locked --package setun-cli --test cli -- --ignored");
    check.count(tests.args(["--skip", deploy::REPLICAS]))
}

fn soak(check: &mut Check) -> Result<()> {
    let mut soak = cargo("test --locked --release --package setun-tests --test soak");
    check.count(soak.env("SETUN_SOAK_MINUTES", SOAK_MINUTES))
}

fn loom(_: &mut Check) -> Result<()> {
    run(&mut elsewhere("clippy --quiet --release -- -D warnings", LOOM, "loom"))?;
    run(&mut elsewhere("run --quiet --release", LOOM, "loom"))
}

/// The public interfaces against those of the last release.
fn semver(check: &mut Check) -> Result<()> {
    let Some(release) = last_release() else {
        say("no release is tagged before this commit: there is nothing to compare with");
        return Ok(());
    };
    check.needs(find_program(SEMVER).is_some(), NO_SEMVER)?;
    say(&format!("public interfaces since {release}"));
    let metadata = metadata(WORKSPACE)?;
    let compare = || cargo(&format!("semver-checks --workspace --baseline-rev {release}"));
    let hidden = packages(&metadata)?.iter().filter(|it| is_ours(it) && !is_published(it));
    let hidden = hidden.flat_map(|it| ["--exclude", it["name"].as_str().unwrap_or_default()]);
    run(compare().args(hidden))?;
    run(compare().args(["--manifest-path", BATCH]))
}

/// The last tag of a release before this commit: the commit may itself be a release.
fn last_release() -> Option<String> {
    let mut command = program("git");
    command.args(["describe", "--tags", "--abbrev=0", "--match", "v[0-9]*", "HEAD^"]);
    Some(output(&mut command).ok()?.trim().to_owned()).filter(|tag| !tag.is_empty())
}

/// Every package compiles alone, with its default features and with none. With others they are compiled in other
/// stages; a full check compiles with each of them alone.
fn features(check: &mut Check) -> Result<()> {
    let metadata = metadata(WORKSPACE)?;
    for package in packages(&metadata)?.iter().filter(|package| is_ours(package)) {
        let name = package["name"].as_str().unwrap_or_default();
        let features = package["features"].as_object().into_iter().flatten();
        let features: Vec<&str> = features.map(|(feature, _)| feature.as_str()).collect();
        let compile = |more: &str| {
            without_a_word(&mut cargo(&format!("check --locked --quiet --package {name} {more}")))
        };
        if !features.is_empty() {
            compile("--no-default-features")?;
        }
        if features.contains(&"default") {
            compile("")?;
        }
        if check.options.is_full() {
            let code = code(package)?;
            let mut alone = features.into_iter().filter(|feature| is_own(name, feature, &code));
            alone.try_for_each(|it| compile(&format!("--no-default-features --features {it}")))?;
        }
    }
    Ok(())
}

/// True for a feature that the package's code mentions. Another is passed on to other packages, where it is looked at.
fn is_own(package: &str, feature: &str, code: &str) -> bool {
    !systems::compiles(package, feature) && code.contains(&format!("feature = \"{feature}\""))
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
    let files = under(manifest.parent().context("a package in a folder")?)?;
    let code = files.iter().filter(|path| path.extension().is_some_and(|end| end == "rs"));
    Ok(code.map(fs::read_to_string).collect::<Result<Vec<_>, _>>()?.concat())
}

fn documentation(_: &mut Check) -> Result<()> {
    let mut command = workspace::documentation();
    command.args(["--no-deps", "--quiet"]);
    // The command's pages would replace the library's: both are called setun.
    command.args(["--exclude", "setun-cli"]);
    run(command.env("RUSTDOCFLAGS", "-D warnings"))
}

/// Runs the script of npm that the stage is named after.
fn npm_script(check: &mut Check) -> Result<()> {
    let stage = check.stage;
    let (folder, script) = stage.split_once(' ').context("a folder and a script")?;
    install(folder)?;
    let mut command = npm(folder)?;
    command.args(["run", "--silent", script]);
    if script.starts_with("test:") || folder == "web" {
        command.env("CHROME", browser::chrome()?).env("FIREFOX", browser::firefox()?);
    }
    if [NPM_EQUALITY, "web test"].contains(&stage) {
        command.env("SETUN_COMMAND", built_with_tests()?.join("setun"));
    }
    if stage == NPM_EQUALITY {
        command.envs(browser::webkit_driver()?.map(|driver| ("WEBKIT_DRIVER", driver)));
    }
    check.count(&mut command)
}

/// The kernels' checks as WebAssembly, in Node and Chromium.
fn kernels(check: &mut Check) -> Result<()> {
    install("npm")?;
    let modules = wasm::build_checks(in_ci())?;
    let modules =
        modules.iter().map(|(variant, path)| format!("{}={}", variant.name(), path.display()));
    in_chromium(check, node()?.arg("xtask/wasm-tests.mjs").args(modules))
}

/// Every variant of every GPU kernel, compiled by Chromium.
fn shaders(check: &mut Check) -> Result<()> {
    install("npm")?;
    let mut export = program(built_with_tests()?.join("examples/wgsl"));
    let list = target().join("xtask/wgsl.json");
    write_if_changed(&list, output(&mut export)?.as_bytes())?;
    in_chromium(check, node()?.arg("xtask/shader-tests.mjs").arg(list))
}

fn in_chromium(check: &mut Check, script: &mut Command) -> Result<()> {
    check.count(script.env("CHROME", browser::chrome()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_needed_comes_before_in_another_lane() {
        for (at, stage) in ALL.iter().enumerate() {
            assert!(stage.lane < LANES, "{}", stage.name);
            assert!(ALL[..at].iter().all(|other| other.name != stage.name), "{}", stage.name);
            for need in stage.needs {
                let needed = ALL[..at].iter().find(|before| before.name == *need);
                // A lane would wait for itself.
                assert!(needed.is_some_and(|it| it.lane != stage.lane), "{} {need}", stage.name);
            }
        }
    }

    #[test]
    fn every_input_is_the_beginning_of_a_path() {
        let files = output(program("git").arg("ls-files")).unwrap();
        let inputs = ALL.iter().flat_map(|stage| stage.inputs);
        let is_there = |input: &&&str| files.lines().any(|file| file.starts_with(**input));
        assert_eq!(inputs.filter(|input| !is_there(input)).collect::<Vec<_>>(), [&""; 0]);
    }
}
