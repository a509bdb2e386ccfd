//! Child processes: commands of the repository, their output and messages.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// The repository's root. Cargo says at run time where this tool's manifest is: what it said at
/// compile time is wrong once the folder has moved. Without cargo it is the folder that the tool is
/// run in, if that is a checkout or there is no other.
pub(crate) fn root() -> PathBuf {
    if let Some(manifest) = std::env::var_os("CARGO_MANIFEST_DIR") {
        return Path::new(&manifest).parent().map(Path::to_path_buf).unwrap_or_default();
    }
    let compiled = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new(""));
    match std::env::current_dir() {
        Ok(here) if here.join("xtask/Cargo.toml").is_file() || !compiled.is_dir() => here,
        _ => compiled.to_path_buf(),
    }
}

/// Where everything is built: `target`, or what `CARGO_TARGET_DIR` says.
pub(crate) fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(folder) => root().join(folder),
        None => root().join("target"),
    }
}

/// True in continuous integration, where nothing may be skipped in silence.
pub(crate) fn in_ci() -> bool {
    std::env::var_os("CI")
        .is_some_and(|value| !value.is_empty() && value != "false" && value != "0")
}

/// Says what happens now. Standard output is kept for what was requested.
pub(crate) fn say(what: &str) {
    eprintln!("xtask: {what}");
}

/// A program to run in the repository's root, without standard input. What cargo says of this tool's package
/// is not passed on: build scripts that look at it would run again, and what needs them be compiled again.
pub(crate) fn program(name: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(name);
    command.current_dir(root()).stdin(Stdio::null());
    for (variable, _) in std::env::vars_os().filter(|(variable, _)| is_of_package(variable)) {
        command.env_remove(variable);
    }
    command
}

/// Whether cargo sets a variable to say something of the package whose program it runs.
fn is_of_package(variable: &OsStr) -> bool {
    let bytes = variable.as_encoded_bytes();
    bytes.starts_with(b"CARGO_MANIFEST_") || bytes.starts_with(b"CARGO_PKG_")
}

/// The cargo that runs this tool.
pub(crate) fn cargo() -> Command {
    program(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// The rustdoc of the cargo that runs this tool.
pub(crate) fn rustdoc() -> OsString {
    std::env::var_os("RUSTDOC").unwrap_or_else(|| "rustdoc".into())
}

/// Cargo's arguments for the tests of the workspace.
pub(crate) const WORKSPACE_TESTS: [&str; 3] = ["test", "--workspace", "--locked"];

/// Where the workspace's programs and examples are that are built beside its tests. A build of
/// their own would choose other features for the crates that they need, and compile them again.
pub(crate) fn built_with_tests() -> Result<PathBuf> {
    run(cargo().args(WORKSPACE_TESTS).args(["--quiet", "--no-run"]))?;
    Ok(target().join("debug"))
}

/// A program as one would type it, for messages.
pub(crate) fn typed(command: &Command) -> String {
    let name = Path::new(command.get_program()).file_name().unwrap_or_default();
    std::iter::once(name)
        .chain(command.get_args())
        .map(|word| word.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}

/// Runs `command` with all its output on standard error; an exit status other than 0 is an error.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    show(command.stdout(io::stderr()))
}

/// Runs `command` with its output shown as it is; an exit status other than 0 is an error.
pub(crate) fn show(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot start `{}`", typed(command)))?;
    if !status.success() {
        bail!("`{}` failed: {status}", typed(command));
    }
    Ok(())
}

/// Runs `command` and returns its standard output; its errors are shown only if it fails.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot start `{}`", typed(command)))?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        bail!("`{}` failed: {}\n{}", typed(command), output.status, errors.trim_end());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// True if `command` can be started and succeeds; shows nothing.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// The full path of a program in `PATH`.
pub(crate) fn find_program(name: &str) -> Option<PathBuf> {
    let suffix = std::env::consts::EXE_SUFFIX;
    std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|folder| folder.join(format!("{name}{suffix}")))
        .find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_do_not_see_what_cargo_says_of_this_package() {
        for variable in ["CARGO_MANIFEST_DIR", "CARGO_MANIFEST_LINKS", "CARGO_PKG_NAME"] {
            assert!(is_of_package(OsStr::new(variable)), "{variable}");
        }
        for variable in ["CARGO", "CARGO_TARGET_DIR", "CARGO_PROFILE_DEV_DEBUG", "PATH"] {
            assert!(!is_of_package(OsStr::new(variable)), "{variable}");
        }
        // Every runner of these tests sets it.
        let variable = "CARGO_MANIFEST_DIR";
        let command = program("x");
        let is_removed = command.get_envs().any(|it| it == (OsStr::new(variable), None));
        assert_eq!(is_removed, std::env::var_os(variable).is_some(), "{command:?}");
    }
}
