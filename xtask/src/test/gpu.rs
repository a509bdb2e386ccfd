//! The GPU backend on a Vulkan device: the machine's own, or Mesa's software adapter, lavapipe.

use std::path::Path;

use anyhow::Result;

use super::stage::Check;
use super::workspace::tests;

/// Where Vulkan's drivers say that they are there.
const DRIVERS: [&str; 2] = ["/usr/share/vulkan/icd.d", "/etc/vulkan/icd.d"];
const DEBIAN_PACKAGES: [&str; 2] = ["mesa-vulkan-drivers", "libvulkan1"];

/// Every operation and plan against the reference, the self-test with its wrong kernels, one whole model.
const PARITY: [&str; 2] = ["--test", "gpu_parity"];
const ONE_MODEL: [&str; 5] =
    ["--test", "gpu", "--", "self_test::", "models::text_is_that_of_the_cpu_up_to_a_small_margin"];

/// Further paths that whole models on a GPU depend on.
pub(super) const MODEL_INPUTS: [&str; 6] = [
    "crates/setun-gpu/",
    "crates/setun-model/src/",
    "crates/setun/src/device",
    "shaders/wgsl/",
    "tests/tests/gpu",
    "xtask/src/test/gpu.rs",
];

/// Other systems bring their own driver.
fn needs_driver(check: &mut Check) -> Result<()> {
    let has_files = |path| Path::new(path).read_dir().is_ok_and(|mut files| files.next().is_some());
    let has_driver = !cfg!(target_os = "linux") || DRIVERS.into_iter().any(has_files);
    check.needs_packages(has_driver, "a Vulkan driver", &DEBIAN_PACKAGES)
}

pub(super) fn test(check: &mut Check) -> Result<()> {
    needs_driver(check)?;
    check.count(tests().arg("--no-fail-fast").args(PARITY))?;
    check.count(tests().arg("--no-fail-fast").args(ONE_MODEL))
}

pub(super) fn test_models(check: &mut Check) -> Result<()> {
    needs_driver(check)?;
    let mut models = tests();
    models.args(["--no-fail-fast", "--test", "gpu", "--test", "gpu_engine", "--"]);
    check.count(models.args(ONE_MODEL[3..].iter().flat_map(|done| ["--skip", done])))?;
    check.count(tests().args(["--test", "cli", "--", "gpu::"]))
}
