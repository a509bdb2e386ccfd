//! The client `async-openai` in `--long`: its crates take longer to compile than all other clients to run.

use anyhow::Result;

use super::{Server, make_model};
use crate::shell::{built_with_tests, program, run, target};
use crate::test::stage::Check;
use crate::test::workspace::elsewhere;

/// A workspace of its own.
pub(in crate::test) const MANIFEST: &str = "crates/setun-serve/tests/clients/rust/Cargo.toml";

pub(in crate::test) fn test(check: &mut Check) -> Result<()> {
    let command = built_with_tests()?.join("setun");
    let model = target().join("clients").join("model");
    make_model(program("python3"), &model)?;
    let client = |line| elsewhere(line, MANIFEST, "clients/rust");
    run(&mut client("clippy --quiet -- -D warnings"))?;
    [None, Some(&*model)].into_iter().try_for_each(|folder| {
        let server = Server::start(&command, folder, &[])?;
        check.count(server.given_to(&mut client("run --quiet --")))
    })
}
