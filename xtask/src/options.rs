//! Files made from the option table.

use anyhow::Result;

use crate::shell;

/// What has the test of the files write them: `crates/setun/tests/options/main.rs`.
const UPDATE: &str = "SETUN_UPDATE_OPTIONS";

/// Writes the files anew.
pub(crate) fn run() -> Result<()> {
    let arguments = ["test", "-p", "setun", "--features", "config", "--test", "options"];
    shell::run(shell::cargo().args(arguments).arg("files_made").env(UPDATE, "1"))
}
