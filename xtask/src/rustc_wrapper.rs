//! A compiler wrapper that adds target features to this project's crates alone, so that
//! builds which differ in them share the others: cargo calls this tool in place of the compiler
//! for the members of the workspace.

use std::env;
use std::process::{Command, ExitCode};

use anyhow::Result;

/// The variable with what to add, set where this tool stands for the compiler.
const FEATURES: &str = "SETUN_WORKSPACE_TARGET_FEATURES";

/// Has `cargo` compile the workspace's crates for other targets with more features.
pub(crate) fn add_features(cargo: &mut Command, features: &str) -> Result<()> {
    cargo.env("RUSTC_WORKSPACE_WRAPPER", env::current_exe()?).env(FEATURES, features);
    Ok(())
}

/// Compiles, where cargo has called this tool for that.
pub(crate) fn compile() -> Option<ExitCode> {
    let features = env::var(FEATURES).ok()?;
    let mut arguments = env::args_os().skip(1);
    let mut rustc = Command::new(arguments.next()?);
    let arguments: Vec<_> = arguments.collect();
    // What runs on this machine, as macros do, is for no other target.
    if arguments.iter().any(|argument| argument == "--target") {
        rustc.arg(format!("-Ctarget-feature={features}"));
    }
    let status = rustc.args(arguments).status();
    let code = status.ok().and_then(|status| u8::try_from(status.code()?).ok());
    Some(code.map_or(ExitCode::FAILURE, ExitCode::from))
}
