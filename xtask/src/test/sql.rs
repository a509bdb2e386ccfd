//! The crate of the query engine and the command with it: lints, documentation, tests.
//!
//! The query engine is compiled here alone.

use std::process::Command;

use super::stage::{Stage, count};
use crate::machine::{install_packages, may_install};
use crate::shell::{QUERY_CRATE, cargo, run};

/// The feature of the command.
const FEATURE: &str = "cluster";

/// Features that no other stage compiles: that one, and what it asks the crate for.
pub(super) const FEATURES: [&str; 2] = [FEATURE, "ballista"];

/// The tests of the crate, and the modules of the command's tests.
const TESTS: &str = "sql";
const COMMAND_TESTS: [&str; 3] = ["batch::", "cluster::", "sql::"];

/// A Debian package whose library changes the time of day of a process.
const OTHER_TIME: &str = "libfaketime";

pub(super) fn stage() -> Stage {
    Stage::new("sql", |totals| {
        run(both("clippy").args(["--all-targets", "--quiet", "--", "-D", "warnings"]))?;
        let mut documentation = cargo();
        documentation.args(["doc", "--locked", "--no-deps", "--quiet", "--package", QUERY_CRATE]);
        run(documentation.env("RUSTDOCFLAGS", "-D warnings"))?;
        count(both("test").args(["--no-fail-fast", "--lib", "--test", TESTS]), totals)?;
        count(both("test").arg("--doc"), totals)?;
        if may_install() {
            install_packages(&[OTHER_TIME])?;
        }
        let mut command = both("test");
        command.args(["--no-fail-fast", "--test", "cli", "--"]).args(COMMAND_TESTS);
        count(&mut command, totals)
    })
}

fn both(subcommand: &str) -> Command {
    let mut command = cargo();
    command.args([subcommand, "--locked", "--package", QUERY_CRATE, "--package", "setun-cli"]);
    command.args(["--features", &format!("setun-cli/{FEATURE}")]);
    command
}
