//! This program in place of rustc: features of a dependency that another dependency asks for, left out.
//!
//! Cargo knows no way to take a feature back.

use std::env;
use std::ffi::OsString;
use std::process::{Command, ExitCode};

use anyhow::Result;

/// Set where this program plays rustc.
const PLAYS: &str = "XTASK_PLAYS_RUSTC";

/// The flag of rustc for a feature that is left out; the rest of it is as in cargo's own.
const WITHOUT: &str = "--cfg=without=";

/// The beginning of a feature in cargo's flags, behind `--cfg`.
const FEATURE: &str = "feature=";

/// A crate, and what it is compiled without.
pub(crate) type Without = (&'static str, &'static [&'static str]);

/// Makes cargo compile crates of `profile` without features of theirs. What is left out is in their flags, so cargo
/// compiles them again when it changes.
pub(crate) fn leave_out<'a>(
    cargo: &'a mut Command,
    profile: &str,
    crates: &[Without],
) -> Result<&'a mut Command> {
    cargo.env("RUSTC_WRAPPER", env::current_exe()?).env(PLAYS, "1");
    for (name, features) in crates {
        let flags = features.iter().map(|feature| format!("'{WITHOUT}\"{feature}\"'"));
        let flags = flags.collect::<Vec<_>>().join(",");
        cargo.args(["--config", &format!("profile.{profile}.package.{name}.rustflags=[{flags}]")]);
    }
    Ok(cargo.arg("-Zprofile-rustflags"))
}

/// Runs rustc, if this program plays it.
pub(crate) fn play() -> Option<ExitCode> {
    env::var_os(PLAYS)?;
    let mut arguments = env::args_os().skip(1);
    let rustc = arguments.next()?;
    let status = Command::new(rustc).args(kept(&arguments.collect::<Vec<_>>())).status();
    let passed = status.is_ok_and(|status| status.success());
    Some(if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The arguments without the features that are left out.
fn kept(arguments: &[OsString]) -> Vec<OsString> {
    let words = |argument: &OsString| argument.to_string_lossy().into_owned();
    let named = |argument: &OsString| words(argument).strip_prefix(WITHOUT).map(str::to_owned);
    let without: Vec<String> = arguments.iter().filter_map(named).collect();
    let is_left_out = |argument: &OsString| {
        words(argument).strip_prefix(FEATURE).is_some_and(|it| without.iter().any(|out| out == it))
    };
    let mut kept = vec![];
    let mut rest = arguments.iter().peekable();
    while let Some(argument) = rest.next() {
        if argument == "--cfg" && rest.peek().is_some_and(|next| is_left_out(next)) {
            rest.next();
        } else {
            kept.push(argument.clone());
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_feature_that_is_left_out_is_no_argument() {
        let words = |text: &str| text.split(' ').map(OsString::from).collect::<Vec<_>>();
        let features = r#"--cfg feature="a" --cfg feature="ab" --cfg b"#;
        let with = |flags: &str| words(&format!("lib.rs {features} {flags}"));
        assert_eq!(kept(&with("-O")), with("-O"));
        let without = r#"--cfg=without="a""#;
        let expected = words(&format!(r#"lib.rs --cfg feature="ab" --cfg b {without}"#));
        assert_eq!(kept(&with(without)), expected);
    }
}
