//! The GPU backend on a Vulkan device: the machine's own, or Mesa's software adapter, lavapipe.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::stage::{Stage, count};
use super::totals::Totals;
use crate::machine::{install_packages, may_install};
use crate::shell::cargo;

/// Where Vulkan's drivers say that they are there.
const DRIVERS: [&str; 2] = ["/usr/share/vulkan/icd.d", "/etc/vulkan/icd.d"];
const DEBIAN_PACKAGES: [&str; 2] = ["mesa-vulkan-drivers", "libvulkan1"];

const NO_DRIVER: &str = "needs a Vulkan driver; on Debian, as root: apt-get install \
                         mesa-vulkan-drivers libvulkan1";

/// What reaches a GPU natively, and what tests it.
const FEATURES: &str = "setun-gpu/vulkan,setun-gpu/metal,setun-gpu/dx12,setun-gpu/testing,\
                        setun-tests/vulkan,setun-cli/vulkan";

/// The stage.
pub(super) fn stage() -> Stage {
    if has_driver() || may_install() {
        Stage::new("gpu", test)
    } else {
        Stage::absent("gpu", NO_DRIVER)
    }
}

fn has_driver() -> bool {
    // Other systems bring their own.
    !cfg!(target_os = "linux")
        || DRIVERS.iter().any(|folder| {
            Path::new(folder).read_dir().is_ok_and(|mut files| files.next().is_some())
        })
}

fn test(totals: &mut Totals) -> Result<()> {
    if !has_driver() {
        install_packages(&DEBIAN_PACKAGES)?;
    }
    let mut tests = command("test");
    tests.args(["--no-fail-fast", "--test", "gpu*"]);
    count(&mut tests, totals)?;
    count(command("test").args(["--test", "cli", "--", "gpu::"]), totals)
}

/// Cargo over the whole workspace with all that reaches a GPU here. Fewer packages would choose
/// other features for the crates that they share with the other tests, and compile them again.
pub(super) fn command(subcommand: &str) -> Command {
    let mut cargo = cargo();
    cargo.args([subcommand, "--workspace", "--locked", "--features", FEATURES]);
    // Mesa says on standard error that it finds no screen, unless it does not look for one.
    cargo.env("NODEVICE_SELECT", "1");
    cargo
}
