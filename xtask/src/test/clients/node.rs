//! The clients for JavaScript, in Node.

use std::path::Path;

use anyhow::Result;

use super::Server;
use crate::node::{install, node};
use crate::shell::find_program;
use crate::test::stage::{count, skip};
use crate::test::totals::Totals;

const FOLDER: &str = "crates/setun-serve/tests/clients/node";

const SCRIPTS: [&str; 2] = ["openai.mjs", "ai-sdk.mjs"];

/// Runs each script against a server, and the command beside it.
pub(super) fn test(
    server: &Server,
    command: &Path,
    folder: Option<&Path>,
    totals: &mut Totals,
) -> Result<()> {
    if find_program("node").is_none() {
        return skip(SCRIPTS.len(), "there is no Node for its clients", totals);
    }
    install(FOLDER)?;
    for name in SCRIPTS {
        let mut script = node()?;
        script.arg(Path::new(FOLDER).join(name));
        count(server.given_to(&mut script, command, folder), totals)?;
    }
    Ok(())
}
