//! Cargo over the whole workspace with the features that reach a GPU.
//!
//! Fewer packages would choose other features for the crates that they share, and compile them again.

use std::process::Command;

use crate::shell::cargo;

/// Features of the libraries, what tests them on a GPU, and of the command.
const GPU: &str =
    "setun-gpu/vulkan,setun-gpu/metal,setun-gpu/dx12,setun-gpu/testing,setun-tests/vulkan";
const COMMAND: &str = "setun-cli/vulkan";
const CUDA: &str = "setun-gpu/cuda,setun-tests/cuda";

/// `cargo clippy` with all that reaches a GPU.
pub(super) fn clippy() -> Command {
    with_features("clippy", &[GPU, COMMAND, CUDA])
}

/// `cargo doc` of the libraries with the same, so that both compile the dependencies in one way.
pub(super) fn documentation() -> Command {
    with_features("doc", &[GPU])
}

/// `cargo test` of what needs a device: the stages `gpu` and `cuda` share what they compile.
pub(super) fn tests() -> Command {
    with_features("test", &[GPU, COMMAND, CUDA])
}

/// `cargo build` as for [`tests`].
pub(super) fn build() -> Command {
    let mut command = with_features("build", &[GPU, COMMAND, CUDA]);
    command.args(["--profile", "test"]);
    command
}

fn with_features(subcommand: &str, features: &[&str]) -> Command {
    let mut command = cargo();
    command.args([subcommand, "--workspace", "--locked", "--features", &features.join(",")]);
    // Mesa says on standard error that it finds no screen, unless it does not look for one.
    command.env("NODEVICE_SELECT", "1");
    command
}
