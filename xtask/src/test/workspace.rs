//! Cargo, over this workspace with the features that reach a GPU, and over others.
//!
//! Fewer packages would choose other features for the crates that they share, and compile them again.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::shell::{self, run, target};

/// Features of the libraries, what tests them on a GPU, and of the command.
const GPU: &str =
    "setun-gpu/vulkan,setun-gpu/metal,setun-gpu/dx12,setun-gpu/testing,setun-tests/vulkan";
const COMMAND: &str = "setun-cli/vulkan";
const CUDA: &str = "setun-gpu/cuda,setun-tests/cuda";

/// Cargo with the arguments of a line, none of which has a space.
pub(super) fn cargo(line: &str) -> Command {
    let mut command = shell::cargo();
    command.args(line.split_whitespace());
    command
}

/// The same for another workspace, which is built in a folder of `target`.
pub(super) fn elsewhere(line: &str, manifest: &str, folder: &str) -> Command {
    let (subcommand, arguments) = line.split_once(' ').unwrap_or((line, ""));
    let line = format!("{subcommand} --locked --manifest-path {manifest} {arguments}");
    let mut command = cargo(&line);
    command.env("CARGO_TARGET_DIR", target().join(folder));
    command
}

/// `cargo clippy` with all that reaches a GPU.
pub(super) fn clippy() -> Command {
    with_features("clippy", &[GPU, COMMAND, CUDA])
}

/// `cargo doc` of the libraries with the same, so that both compile the dependencies in one way.
pub(super) fn documentation() -> Command {
    with_features("doc", &[GPU])
}

/// `cargo test` of what needs a device: the stages `gpu` and `cuda` share what they compile.
pub(crate) fn tests() -> Command {
    beside_others("test")
}

/// An example, built as for [`tests`].
pub(super) fn build_example(name: &str) -> Result<PathBuf> {
    run(beside_others("build").args(["--profile", "test", "--quiet", "--example", name]))?;
    Ok(programs().join("debug/examples").join(name))
}

/// Cargo that leaves the commands in `target/debug` alone: other stages run those, without these
/// features.
fn beside_others(subcommand: &str) -> Command {
    let mut command = with_features(subcommand, &[GPU, COMMAND, CUDA]);
    command.env("CARGO_TARGET_DIR", programs()).env("CARGO_BUILD_BUILD_DIR", target());
    command
}

/// Where the commands and examples with these features are.
fn programs() -> PathBuf {
    target().join("gpu")
}

fn with_features(subcommand: &str, features: &[&str]) -> Command {
    let features = features.join(",");
    let mut command = cargo(&format!("{subcommand} --workspace --locked --features {features}"));
    // Mesa says on standard error that it finds no screen, unless it does not look for one.
    command.env("NODEVICE_SELECT", "1");
    command
}
