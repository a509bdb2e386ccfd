//! The GPU backend on a Vulkan device: the machine's own, or Mesa's lavapipe, which is software.

use std::path::Path;

use anyhow::Result;

use super::stage::{Stage, count};
use super::totals::Totals;
use crate::machine::{install_packages, may_install};
use crate::shell::{cargo, run};

/// Where Vulkan's drivers say that they are there.
const DRIVERS: [&str; 2] = ["/usr/share/vulkan/icd.d", "/etc/vulkan/icd.d"];
const DEBIAN_PACKAGES: [&str; 2] = ["mesa-vulkan-drivers", "libvulkan1"];

const NO_DRIVER: &str = "needs a Vulkan driver; on Debian, as root: apt-get install \
                         mesa-vulkan-drivers libvulkan1";

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
    let features = "setun-gpu/vulkan,setun-gpu/testing,setun-tests/vulkan,setun-cli/vulkan";
    let mut lints = cargo();
    lints.args(["clippy", "--locked", "--quiet", "--all-targets", "--features", features]);
    lints.args(
        ["setun-gpu", "setun-tests", "setun-cli"].iter().flat_map(|name| ["--package", name]),
    );
    run(lints.args(["--", "-D", "warnings"]))?;
    let test = |packages: &[&str], tests: &[&str]| {
        let mut command = cargo();
        command.args(["test", "--locked", "--no-fail-fast", "--features", features]);
        command.args(packages.iter().flat_map(|package| ["--package", package]));
        command.args(tests.iter().flat_map(|test| ["--test", test]));
        // Mesa says on standard error that it finds no screen, unless it does not look for one.
        command.env("NODEVICE_SELECT", "1");
        command
    };
    let operations_and_models = ["parity", "gpu", "gpu_steps", "gpu_faults"];
    count(&mut test(&["setun-gpu", "setun-tests"], &operations_and_models), totals)?;
    let packages = ["setun-gpu", "setun-tests", "setun-cli"]; // the features name all three
    count(test(&packages, &["cli"]).args(["--", "gpu::"]), totals)
}
