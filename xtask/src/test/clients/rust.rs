//! The client `async-openai` in `--long`: its crates take longer to compile than all other clients to run.

use std::process::Command;

use super::{FIXTURE, Server, script};
use crate::shell::{built_with_tests, cargo, program, run, target};
use crate::test::stage::{Stage, count};

/// A workspace of its own.
pub(in crate::test) const MANIFEST: &str = "crates/setun-serve/tests/clients/rust/Cargo.toml";

/// The stage.
pub(in crate::test) fn stage() -> Stage {
    Stage::new("clients rust", |totals| {
        let command = built_with_tests()?.join("setun");
        let model = target().join("clients").join("model");
        run(program("python3").arg(script("make_model.py")).arg(FIXTURE).arg(&model))?;
        run(client("clippy").args(["--", "-D", "warnings"]))?;
        for folder in [None, Some(&*model)] {
            let server = Server::start(&command, folder, &[])?;
            let mut client = client("run");
            count(server.given_to(client.arg("--"), &command, folder), totals)?;
        }
        Ok(())
    })
}

fn client(what: &str) -> Command {
    let mut command = cargo();
    command.args([what, "--quiet", "--locked", "--manifest-path", MANIFEST]);
    command.env("CARGO_TARGET_DIR", target().join("clients").join("rust"));
    command
}
