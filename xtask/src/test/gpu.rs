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
    let packages = ["setun-gpu", "setun-tests", "setun-cli"];
    let features = "setun-gpu/vulkan,setun-gpu/metal,setun-gpu/dx12,setun-gpu/testing,\
                    setun-tests/vulkan,setun-cli/vulkan";
    let cargo = |command: &str| {
        let mut cargo = cargo();
        cargo.args([command, "--locked", "--features", features]);
        // The features name packages, which must all be there.
        cargo.args(packages.iter().flat_map(|package| ["--package", package]));
        // Mesa says on standard error that it finds no screen, unless it does not look for one.
        cargo.env("NODEVICE_SELECT", "1");
        cargo
    };
    run(cargo("clippy").args(["--quiet", "--all-targets", "--", "-D", "warnings"]))?;
    let operations_and_models = [
        "parity",
        "gpu",
        "gpu_split",
        "gpu_steps",
        "gpu_texts",
        "gpu_engine",
        "gpu_families",
        "gpu_estimates",
        "gpu_faults",
        "gpu_self_test",
    ];
    let mut tests = cargo("test");
    tests.arg("--no-fail-fast");
    count(tests.args(operations_and_models.iter().flat_map(|test| ["--test", test])), totals)?;
    count(cargo("test").args(["--test", "cli", "--", "gpu::"]), totals)
}
