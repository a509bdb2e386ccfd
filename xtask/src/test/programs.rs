//! Test programs of a workspace, built by one cargo and run beside each other.
//!
//! `cargo test` runs one after the other, and most end with one long test that leaves processors free. What a program
//! prints is shown when it has ended.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::stage::count;
use super::totals::Totals;
use crate::parallel::parallel_map;
use crate::shell::{output, program};

/// A test program, and the folder of its package, where it runs.
#[derive(Debug, PartialEq)]
struct Program {
    path: PathBuf,
    package: PathBuf,
}

/// Runs all tests that `cargo test` with these arguments would run, and those in documentation.
pub(super) fn test(cargo: impl Fn() -> Command, totals: &mut Totals) -> Result<()> {
    let mut build = cargo();
    build.args(["--no-run", "--message-format", "json-render-diagnostics"]);
    let mut programs = of_messages(&output(build.stderr(Stdio::inherit()))?)?;
    // The largest have the most tests: what is started last should end soon.
    programs.sort_by_key(|program| std::cmp::Reverse(size(&program.path)));
    let ran = parallel_map(&programs, Program::run)?;
    let mut failed = vec![];
    for (program, (counted, is_good)) in programs.iter().zip(ran) {
        totals.add(counted);
        failed.extend((!is_good).then(|| name(&program.path)));
    }
    let documented = count(cargo().args(["--doc", "--no-fail-fast"]), totals);
    ensure!(failed.is_empty(), "tests failed in {}", failed.join(", "));
    documented
}

fn size(path: &Path) -> u64 {
    path.metadata().map_or(0, |metadata| metadata.len())
}

/// The name of its test target.
fn name(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    stem.rsplit_once('-').map_or(stem.clone(), |(name, _)| name.to_owned())
}

/// The test programs that cargo's messages name.
fn of_messages(messages: &str) -> Result<Vec<Program>> {
    let mut programs = vec![];
    for line in messages.lines().filter(|line| line.starts_with('{')) {
        let message: Value = serde_json::from_str(line).context("a message of cargo")?;
        if message["profile"]["test"] != true {
            continue;
        }
        let (path, manifest) = (&message["executable"], &message["manifest_path"]);
        if let (Some(path), Some(manifest)) = (path.as_str(), manifest.as_str()) {
            let package = Path::new(manifest).parent().context("a manifest in a folder")?;
            programs.push(Program { path: path.into(), package: package.to_owned() });
        }
    }
    Ok(programs)
}

impl Program {
    /// Runs it as cargo does; returns what it counted and whether it ended well.
    fn run(&self) -> Result<(Totals, bool)> {
        let mut command = program(&self.path);
        command.current_dir(&self.package).env("CARGO_MANIFEST_DIR", &self.package);
        let ran =
            command.output().with_context(|| format!("cannot start {}", self.path.display()))?;
        let mut totals = Totals::default();
        let text = String::from_utf8_lossy(&ran.stdout);
        text.lines().filter_map(Totals::of_line).for_each(|line| totals.add(line));
        let mut shown = std::io::stdout().lock();
        writeln!(shown, "\nRunning {} in {}", name(&self.path), self.package.display())?;
        shown.write_all(&ran.stdout)?;
        shown.write_all(&ran.stderr)?;
        if !ran.status.success() {
            writeln!(shown, "{} ended with {}", name(&self.path), ran.status)?;
        }
        Ok((totals, ran.status.success()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_those_of_test_targets() {
        let messages = concat!(
            r#"{"reason":"compiler-artifact","manifest_path":"/a/b/Cargo.toml","#,
            r#""profile":{"test":true},"executable":"/t/deps/engine-0123"}"#,
            "\n",
            r#"{"reason":"compiler-artifact","manifest_path":"/a/c/Cargo.toml","#,
            r#""profile":{"test":false},"executable":"/t/setun"}"#,
            "\n",
            r#"{"reason":"compiler-artifact","manifest_path":"/a/c/Cargo.toml","#,
            r#""profile":{"test":true},"executable":null}"#,
            "\n{\"reason\":\"build-finished\",\"success\":true}\n",
        );
        let program = Program { path: "/t/deps/engine-0123".into(), package: "/a/b".into() };
        assert_eq!(name(&program.path), "engine");
        assert_eq!(of_messages(messages).unwrap(), [program]);
        assert!(of_messages("{").is_err());
    }

    #[test]
    #[cfg(unix)]
    fn a_program_that_fails_is_counted_and_named() {
        let program = Program { path: "/bin/false".into(), package: std::env::temp_dir() };
        assert_eq!(program.run().unwrap(), (Totals::default(), false));
        let absent = Program { path: "/no/such".into(), ..program };
        assert!(absent.run().unwrap_err().to_string().contains("/no/such"));
    }
}
