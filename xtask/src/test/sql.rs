//! The workspace of queries and batch jobs: lints, tests, documentation.
//!
//! Its query engine takes longer to compile than all the rest of the project, and is compiled once: clippy is the
//! compiler of its two packages, and rustdoc reads what the tests have compiled.

use anyhow::Result;

use super::seed::is_full;
use super::stage::{Stage, count};
use crate::machine::{install_packages, may_install};
use crate::metadata::BATCH;
use crate::rustdoc_pages;
use crate::shell::{cargo, run, target};
use crate::toolchain::with_clippy;

/// A Debian package whose library changes the time of day of a process.
const OTHER_TIME: &str = "libfaketime";

/// Paths of the workspace, and of the parts of the other one that it uses.
const INPUTS: [&str; 8] = [
    "batch/",
    "crates/setun-cli/",
    "crates/setun-serve/src/",
    "crates/setun/src/",
    "tests/support/seed.rs",
    "xtask/src/rustdoc_pages.rs",
    "xtask/src/test/sql.rs",
    "xtask/src/toolchain.rs",
];

/// The command's features but the cluster's.
const NO_CLUSTER: [&str; 5] =
    ["--package", "setun-batch", "--no-default-features", "--features", "embedded-model"];

pub(super) fn stage() -> Stage {
    Stage::new("sql", |totals| {
        if may_install() {
            install_packages(&[OTHER_TIME])?;
        }
        let mut tests = cargo();
        tests.args(["test", "--locked", "--no-fail-fast", "--workspace", "--manifest-path", BATCH]);
        // Beside the builds of the other workspace, of which it shares some.
        with_clippy(tests.env("CARGO_TARGET_DIR", target()))?;
        count(rustdoc_pages::beside_tests(&mut tests, &target().join("batch"))?, totals)?;
        if is_full() { without_cluster() } else { Ok(()) }
    })
    .for_changes_of(&INPUTS)
}

/// The command and the crate without what clusters need.
fn without_cluster() -> Result<()> {
    let check = |package: &[&str]| {
        let mut command = cargo();
        command.args(["check", "--locked", "--quiet", "--manifest-path", BATCH]).args(package);
        run(command.env("CARGO_TARGET_DIR", target()))
    };
    check(&NO_CLUSTER)?;
    check(&["--package", "setun-sql"])
}
