//! Programs that one cargo builds; test programs of the workspace, run beside each other.
//!
//! `cargo test` runs one after the other, and most end with one long test that leaves processors free. What a program
//! prints is shown when it has ended.

use std::cmp::Reverse;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::stage::Check;
use super::totals::Totals;
use super::workspace::cargo;
use crate::parallel::parallel_map;
use crate::shell::{WORKSPACE_TESTS, output, program};

/// A program, the name of its target, and the folder of its package, where tests run.
#[derive(Debug, PartialEq)]
pub(super) struct Program {
    pub(super) name: String,
    pub(super) path: PathBuf,
    package: PathBuf,
}

/// Runs all tests that `cargo test` would run, and those in documentation.
pub(super) fn test(check: &mut Check) -> Result<()> {
    let tests = || cargo(&WORKSPACE_TESTS.join(" "));
    let mut programs = built(tests().arg("--no-run"), true)?;
    // The largest have the most tests: what is started last should end soon.
    programs.sort_by_key(|program| Reverse(program.path.metadata().map_or(0, |data| data.len())));
    let ran = parallel_map(&programs, Program::run)?;
    let mut failed = vec![];
    for (program, (counted, is_good)) in programs.iter().zip(ran) {
        check.totals.add(counted);
        failed.extend((!is_good).then_some(&*program.name));
    }
    let documented = check.count(tests().args(["--doc", "--no-fail-fast"]));
    ensure!(failed.is_empty(), "tests failed in {}", failed.join(", "));
    documented
}

/// Builds, and returns the programs that are tests, or those that are not.
pub(super) fn built(cargo: &mut Command, are_tests: bool) -> Result<Vec<Program>> {
    cargo.args(["--message-format", "json-render-diagnostics"]).stderr(Stdio::inherit());
    of_messages(&output(cargo)?, are_tests)
}

fn of_messages(messages: &str, are_tests: bool) -> Result<Vec<Program>> {
    let mut programs = vec![];
    for line in messages.lines().filter(|line| line.starts_with('{')) {
        let message: Value = serde_json::from_str(line).context("a message of cargo")?;
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let is_built = message["profile"]["test"] == are_tests;
        if let Some(path) = text(&message["executable"]).filter(|_| is_built) {
            let manifest = text(&message["manifest_path"]).unwrap_or_default();
            let package = Path::new(&manifest).parent().context("a manifest in a folder")?.into();
            let name = text(&message["target"]["name"]).unwrap_or_default();
            programs.push(Program { name, path: path.into(), package });
        }
    }
    Ok(programs)
}

impl Program {
    /// Runs it as cargo does; returns what it counted and whether it ended well.
    fn run(&self) -> Result<(Totals, bool)> {
        let Self { name, path, package } = self;
        let mut command = program(path);
        command.current_dir(package).env("CARGO_MANIFEST_DIR", package);
        let ran = command.output().with_context(|| format!("cannot start {}", path.display()))?;
        let mut totals = Totals::default();
        totals.add_text(&String::from_utf8_lossy(&ran.stdout));
        let mut shown = std::io::stdout().lock();
        writeln!(shown, "\nRunning {name} in {}", package.display())?;
        shown.write_all(&[ran.stdout, ran.stderr].concat())?;
        if !ran.status.success() {
            writeln!(shown, "{name} ended with {}", ran.status)?;
        }
        Ok((totals, ran.status.success()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_those_of_test_targets() {
        let messages = r#"{"reason":"compiler-artifact","manifest_path":"/a/b/Cargo.toml","profile":{"test":true},"target":{"name":"engine"},"executable":"/t/deps/engine-0123"}
{"reason":"compiler-artifact","manifest_path":"/a/c/Cargo.toml","profile":{"test":false},"target":{"name":"setun"},"executable":"/t/setun"}
{"reason":"compiler-artifact","manifest_path":"/a/c/Cargo.toml","profile":{"test":true},"target":{"name":"setun"},"executable":null}
{"reason":"build-finished","success":true}"#;
        let program = |name: &str, path: &str, package: &str| Program {
            name: name.into(),
            path: path.into(),
            package: package.into(),
        };
        let tests = [program("engine", "/t/deps/engine-0123", "/a/b")];
        assert_eq!(of_messages(messages, true).unwrap(), tests);
        assert_eq!(of_messages(messages, false).unwrap(), [program("setun", "/t/setun", "/a/c")]);
        assert!(of_messages("{", true).is_err());
    }

    #[test]
    #[cfg(unix)]
    fn a_program_that_fails_is_counted_and_named() {
        let package = std::env::temp_dir();
        let program = Program { name: "x".into(), path: "/bin/false".into(), package };
        assert_eq!(program.run().unwrap(), (Totals::default(), false));
        let absent = Program { path: "/no/such".into(), ..program };
        assert!(absent.run().unwrap_err().to_string().contains("/no/such"));
    }
}
