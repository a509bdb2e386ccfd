//! Metrics of a server, which promtool judges where it is installed or may be.

use std::path::Path;

use anyhow::Result;

use super::{Server, script};
use crate::machine::{install_packages, may_install};
use crate::shell::{find_program, program};
use crate::test::stage::{count, skip};
use crate::test::totals::Totals;

const TOOL: &str = "promtool";

/// The Debian package that has it.
const PACKAGE: &str = "prometheus";

/// Names of metrics, as `--metrics-compat` has them.
const NAMES: [&str; 2] = ["setun", "vllm"];

/// Asks a server with each of the names.
pub(super) fn test(command: &Path, totals: &mut Totals) -> Result<()> {
    if find_program(TOOL).is_none() && may_install() {
        install_packages(&[PACKAGE])?;
    }
    let Some(tool) = find_program(TOOL) else {
        return skip(NAMES.len(), "there is no promtool to judge metrics", totals);
    };
    for names in NAMES {
        let server = Server::start(command, None, &["--metrics-compat", names])?;
        let mut python = program("python3");
        count(python.arg(script("metrics.py")).arg(&server.url).arg(&tool), totals)?;
    }
    Ok(())
}
