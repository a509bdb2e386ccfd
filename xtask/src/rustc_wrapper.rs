//! A compiler wrapper that has flags for this project's crates alone: cargo calls this tool in place of
//! the compiler for the members of the workspace.
//!
//! Builds that differ in such flags share the other crates.

use std::env::{self, consts::EXE_SUFFIX};
use std::fs;
use std::iter;
use std::path::PathBuf;
use std::process::{self, Command, ExitCode};
use std::sync::{Mutex, PoisonError};

use anyhow::{Result, bail};

use crate::shell::target;

/// The variable with target features to add, set where this tool stands for the compiler.
const FEATURES: &str = "SETUN_WORKSPACE_TARGET_FEATURES";

/// Has `cargo` compile the workspace's crates for other targets with more features.
///
/// Cargo finds the wrapper in the `PATH`: names of symbols depend on what is given here, which is
/// the same in every folder.
pub(crate) fn wrap(cargo: &mut Command, features: &str) -> Result<()> {
    let wrapper = link(features)?;
    let (Some(folder), Some(name)) = (wrapper.parent(), wrapper.file_name()) else {
        bail!("{} is no file in a folder", wrapper.display());
    };
    let before = env::var_os("PATH").unwrap_or_default();
    let folders = iter::once(folder.to_path_buf()).chain(env::split_paths(&before));
    cargo.env("PATH", env::join_paths(folders)?);
    cargo.env("RUSTC_WORKSPACE_WRAPPER", name).env(FEATURES, features);
    Ok(())
}

/// This tool under another name: by the wrapper's name cargo tells apart what it compiled.
///
/// It is linked and not copied: a file that was just written may be busy where other threads start
/// processes.
fn link(features: &str) -> Result<PathBuf> {
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = target().join("xtask");
    fs::create_dir_all(&folder)?;
    let made = folder.join(format!("rustc{features}-{}{EXE_SUFFIX}", process::id()));
    let tool = env::current_exe()?;
    fs::hard_link(&tool, &made).or_else(|_| fs::copy(&tool, &made).map(drop))?;
    let link = folder.join(format!("rustc{features}{EXE_SUFFIX}"));
    fs::rename(&made, &link)?;
    // A link that replaces one to the same file stays.
    let _ = fs::remove_file(made);
    Ok(link)
}

/// Compiles, where cargo has called this tool for that.
pub(crate) fn compile() -> Option<ExitCode> {
    let features = env::var(FEATURES).ok()?;
    let mut arguments = env::args_os().skip(1);
    let mut rustc = Command::new(arguments.next()?);
    let arguments: Vec<_> = arguments.collect();
    // What runs on this machine, as macros do, is for no other target.
    let is_for_target = arguments.iter().any(|argument| argument == "--target");
    rustc.args(arguments);
    if is_for_target {
        rustc.arg(format!("-Ctarget-feature={features}"));
    }
    let status = rustc.status();
    let code = status.ok().and_then(|status| u8::try_from(status.code()?).ok());
    Some(code.map_or(ExitCode::FAILURE, ExitCode::from))
}
