//! This program in place of rustdoc: the pages of a library, made from what the tests of its examples have compiled.
//!
//! `cargo doc` would compile all dependencies once more, without code.

use std::env;
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::Result;

use crate::shell::rustdoc;

/// The rustdoc that is called, where this program plays it, and the folder of the pages.
const RUSTDOC: &str = "XTASK_RUSTDOC";
const FOLDER: &str = "XTASK_RUSTDOC_FOLDER";

/// Flags of `cargo test --doc` that make no pages, the second with a value.
const TEST: &str = "--test";
const RUN_IN: &str = "--test-run-directory";

/// Makes `cargo test --doc` write the pages, too, with every warning an error.
pub(crate) fn beside_tests<'a>(cargo: &'a mut Command, folder: &Path) -> Result<&'a mut Command> {
    Ok(cargo.env("RUSTDOC", env::current_exe()?).env(RUSTDOC, rustdoc()).env(FOLDER, folder))
}

/// Runs rustdoc, if this program plays it.
pub(crate) fn play() -> Option<ExitCode> {
    let (program, folder) = (env::var_os(RUSTDOC)?, env::var_os(FOLDER)?);
    let arguments: Vec<OsString> = env::args_os().skip(1).collect();
    let succeeds = |command: &mut Command| command.status().is_ok_and(|status| status.success());
    let has_pages = !arguments.iter().any(|argument| argument == TEST)
        || succeeds(
            Command::new(&program)
                .args(of_pages(&arguments))
                .args(["-D", "warnings", "--out-dir"])
                .arg(folder),
        );
    let passed = has_pages && succeeds(Command::new(program).args(arguments));
    Some(if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The arguments without what makes tests of them.
fn of_pages(arguments: &[OsString]) -> Vec<OsString> {
    let mut found = vec![];
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        if argument == RUN_IN {
            rest.next();
        } else if argument != TEST {
            found.push(argument.clone());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_makes_tests_is_left_out() {
        let words = |text: &str| text.split(' ').map(OsString::from).collect::<Vec<_>>();
        let arguments = words("--crate-name a --test src/lib.rs --test-run-directory b --cfg test");
        assert_eq!(of_pages(&arguments), words("--crate-name a src/lib.rs --cfg test"));
    }
}
