//! The workspace of queries and batch jobs: lints, tests, documentation.
//!
//! Its query engine takes longer to compile than all the rest of the project, and is compiled once: clippy is the
//! compiler of its two packages, and rustdoc reads what the tests have compiled.

use anyhow::Result;

use super::stage::Check;
use super::workspace::elsewhere;
use crate::machine::{install_packages, may_install};
use crate::metadata::BATCH;
use crate::rustdoc_pages;
use crate::shell::{run, target};
use crate::toolchain::with_clippy;

/// A Debian package whose library changes the time of day of a process.
const OTHER_TIME: &str = "libfaketime";

/// Paths of the workspace, and of the parts of the other one that it uses.
pub(super) const INPUTS: [&str; 8] = [
    "batch/",
    "crates/setun-cli/",
    "crates/setun-serve/src/",
    "crates/setun/src/",
    "tests/support/seed.rs",
    "xtask/src/rustdoc_pages.rs",
    "xtask/src/test/sql.rs",
    "xtask/src/toolchain.rs",
];

/// The command and the crate without what clusters need.
const WITHOUT_CLUSTER: [&str; 2] = [
    "check --quiet --package setun-batch --no-default-features --features embedded-model",
    "check --quiet --package setun-sql",
];

pub(super) fn test(check: &mut Check) -> Result<()> {
    if may_install() {
        install_packages(&[OTHER_TIME])?;
    }
    // Beside the builds of the other workspace, of which it shares some.
    let batch = |line| elsewhere(line, BATCH, "");
    let mut tests = batch("test --no-fail-fast --workspace");
    with_clippy(&mut tests)?;
    check.count(rustdoc_pages::beside_tests(&mut tests, &target().join("batch"))?)?;
    let mut more = WITHOUT_CLUSTER.iter().filter(|_| check.options.is_full());
    more.try_for_each(|line| run(&mut batch(line)))
}
