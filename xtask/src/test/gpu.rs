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
    count(tests().args(["--no-fail-fast", "--test", "gpu*"]), totals)?;
    count(tests().args(["--test", "cli", "--", "gpu::"]), totals)
}
