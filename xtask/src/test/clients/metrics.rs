//! Metrics of a server, which promtool judges where it is installed.

use std::path::Path;

use anyhow::Result;

use super::{Server, script};
use crate::shell::{find_program, program, say};
use crate::test::stage::count;
use crate::test::totals::Totals;

const TOOL: &str = "promtool";

/// Names of metrics, as `--metrics-compat` has them.
const NAMES: [&str; 2] = ["setun", "vllm"];

/// Asks a server with each of the names.
pub(super) fn test(command: &Path, totals: &mut Totals) -> Result<()> {
    let Some(tool) = find_program(TOOL) else {
        say("there is no promtool: its test of the metrics is skipped");
        totals.skipped += NAMES.len() as u64;
        return Ok(());
    };
    for names in NAMES {
        let server = Server::start(command, None, &["--metrics-compat", names])?;
        let mut python = program("python3");
        count(python.arg(script("metrics.py")).arg(&server.url).arg(&tool), totals)?;
    }
    Ok(())
}
