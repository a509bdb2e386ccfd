//! The GPU backend on a Vulkan device: the machine's own, or Mesa's software adapter, lavapipe.

use std::path::Path;

use anyhow::Result;

use super::stage::{Stage, count};
use super::totals::Totals;
use super::workspace::tests;
use crate::machine::{install_packages, may_install};

/// Where Vulkan's drivers say that they are there.
const DRIVERS: [&str; 2] = ["/usr/share/vulkan/icd.d", "/etc/vulkan/icd.d"];
const DEBIAN_PACKAGES: [&str; 2] = ["mesa-vulkan-drivers", "libvulkan1"];

const NO_DRIVER: &str = "needs a Vulkan driver; on Debian, as root: apt-get install \
                         mesa-vulkan-drivers libvulkan1";

/// Every operation and plan against the reference, the self-test with its wrong kernels, one whole model.
const PARITY: [&str; 2] = ["--test", "gpu_parity"];
const ONE_MODEL: [&str; 5] =
    ["--test", "gpu", "--", "self_test::", "models::text_is_that_of_the_cpu_up_to_a_small_margin"];

/// Further paths that whole models on a GPU depend on.
const MODEL_INPUTS: [&str; 6] = [
    "crates/setun-gpu/",
    "crates/setun-model/src/",
    "crates/setun/src/device",
    "shaders/wgsl/",
    "tests/tests/gpu",
    "xtask/src/test/gpu.rs",
];

/// The stages.
pub(super) fn stages() -> [Stage; 2] {
    let is_there = has_driver() || may_install();
    let stage = |name, test: fn(&mut Totals) -> Result<()>| {
        if is_there { Stage::new(name, test) } else { Stage::absent(name, NO_DRIVER) }
    };
    [stage("gpu", test), stage("gpu models", test_models).for_changes_of(&MODEL_INPUTS)]
}

fn has_driver() -> bool {
    // Other systems bring their own.
    !cfg!(target_os = "linux")
        || DRIVERS.iter().any(|folder| {
            Path::new(folder).read_dir().is_ok_and(|mut files| files.next().is_some())
        })
}

fn install_driver() -> Result<()> {
    if has_driver() { Ok(()) } else { install_packages(&DEBIAN_PACKAGES) }
}

fn test(totals: &mut Totals) -> Result<()> {
    install_driver()?;
    count(tests().arg("--no-fail-fast").args(PARITY), totals)?;
    count(tests().arg("--no-fail-fast").args(ONE_MODEL), totals)
}

fn test_models(totals: &mut Totals) -> Result<()> {
    install_driver()?;
    let mut models = tests();
    models.args(["--no-fail-fast", "--test", "gpu", "--test", "gpu_engine", "--"]);
    count(models.args(ONE_MODEL[3..].iter().flat_map(|done| ["--skip", done])), totals)?;
    count(tests().args(["--test", "cli", "--", "gpu::"]), totals)
}
