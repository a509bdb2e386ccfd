//! Cargo over the whole workspace with the features that reach a GPU.
//!
//! Fewer packages would choose other features for the crates that they share, and compile them again.

use std::process::Command;

use crate::shell::cargo;

/// What reaches a GPU natively but by CUDA, and what tests it.
const GPU: &str = "setun-gpu/vulkan,setun-gpu/metal,setun-gpu/dx12,setun-gpu/testing,\
                   setun-tests/vulkan,setun-cli/vulkan";
const CUDA: &str = "setun-gpu/cuda,setun-tests/cuda";

/// `cargo clippy` with all that reaches a GPU here.
pub(super) fn clippy() -> Command {
    with_features("clippy", GPU)
}

/// `cargo test` of what needs a device: the stages `gpu` and `cuda` share what they compile.
pub(super) fn tests() -> Command {
    with_features("test", &format!("{GPU},{CUDA}"))
}

/// `cargo build` as for [`tests`].
pub(super) fn build() -> Command {
    let mut command = with_features("build", &format!("{GPU},{CUDA}"));
    command.args(["--profile", "test"]);
    command
}

fn with_features(subcommand: &str, features: &str) -> Command {
    let mut command = cargo();
    command.args([subcommand, "--workspace", "--locked", "--features", features]);
    // Mesa says on standard error that it finds no screen, unless it does not look for one.
    command.env("NODEVICE_SELECT", "1");
    command
}
