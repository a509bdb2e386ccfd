//! This machine: its system, the packages that may be installed, and the commands for the rest.

use std::env::consts::OS;
use std::fs::{self, File};
use std::path::Path;

use anyhow::{Error, Result, anyhow, bail};

use crate::shell::{find_program, in_ci, output, program, run, say, succeeds, target};

/// Systems that messages know a command for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum System {
    /// Debian, Ubuntu and their kin.
    Debian,
    /// Fedora and its kin.
    Fedora,
    /// macOS.
    MacOs,
    /// Windows.
    Windows,
    /// Something else.
    Other,
}

impl System {
    /// The system that runs this tool.
    pub(crate) fn here() -> Self {
        match OS {
            "macos" => Self::MacOs,
            "windows" => Self::Windows,
            _ => Self::from_os_release(&fs::read_to_string("/etc/os-release").unwrap_or_default()),
        }
    }

    fn from_os_release(text: &str) -> Self {
        let kin = text
            .lines()
            .filter_map(|line| line.strip_prefix("ID_LIKE=").or_else(|| line.strip_prefix("ID=")))
            .flat_map(|names| names.trim_matches('"').split_whitespace());
        for name in kin {
            match name {
                "debian" | "ubuntu" => return Self::Debian,
                "fedora" | "rhel" => return Self::Fedora,
                _ => {}
            }
        }
        Self::Other
    }
}

/// Something that is not here, and the command that brings it, by system.
pub(crate) struct Missing {
    /// What is missing and what it is for.
    pub(crate) what: &'static str,
    /// Command on Debian.
    pub(crate) debian: &'static str,
    /// Command on Fedora.
    pub(crate) fedora: &'static str,
    /// Command on macOS.
    pub(crate) macos: &'static str,
    /// Command on Windows.
    pub(crate) windows: &'static str,
}

impl Missing {
    /// One message: what is missing, and the command for this system.
    pub(crate) fn error(&self) -> Error {
        self.message(System::here())
    }

    fn message(&self, system: System) -> Error {
        let command = match system {
            System::Debian => self.debian,
            System::Fedora => self.fedora,
            System::MacOs => self.macos,
            System::Windows => self.windows,
            System::Other => {
                return anyhow!(
                    "{}.\nOn Debian:  {}\nOn Fedora:  {}",
                    self.what,
                    self.debian,
                    self.fedora
                );
            }
        };
        anyhow!("{}. Install it with:\n  {command}", self.what)
    }
}

/// Node, which runs the npm build, wasm-opt and the tests of the page.
pub(crate) const NODE: Missing = Missing {
    what: "Node 20 or newer, with npm, builds the package and the page, and is not here",
    debian: "apt-get install nodejs npm   (as root; Debian 13 or newer, else from https://nodejs.org)",
    fedora: "dnf install nodejs npm   (as root)",
    macos: "brew install node",
    windows: "winget install OpenJS.NodeJS.LTS",
};

/// True if this tool may install Debian packages: as root, on Debian, and only where nobody's
/// own system is touched.
pub(crate) fn may_install() -> bool {
    System::here() == System::Debian
        && find_program("apt-get").is_some()
        && (in_ci() || in_container())
        && output(program("id").arg("-u")).is_ok_and(|id| id.trim() == "0")
}

fn in_container() -> bool {
    Path::new("/.dockerenv").exists()
        || Path::new("/run/.containerenv").exists()
        || std::env::var_os("container").is_some()
        || fs::read_to_string("/proc/1/cgroup")
            .is_ok_and(|groups| groups.contains("docker") || groups.contains("kubepods"))
}

/// True if all of these Debian packages are installed.
pub(crate) fn has_packages(packages: &[&str]) -> bool {
    packages.iter().all(|package| {
        output(program("dpkg-query").args(["-W", "-f=${Status}", package]))
            .is_ok_and(|status| status.trim() == "install ok installed")
    })
}

/// Installs Debian packages where [`may_install`] allows it, and says which.
pub(crate) fn install_packages(packages: &[&str]) -> Result<()> {
    if has_packages(packages) {
        return Ok(());
    }
    if !may_install() {
        bail!("Debian packages are missing: {}", packages.join(" "));
    }
    let _alone = installing()?;
    say(&format!("installing the Debian packages {}", packages.join(" ")));
    let apt = |arguments: &[&str]| {
        let mut command = program("apt-get");
        command.env("DEBIAN_FRONTEND", "noninteractive").arg("-qq").args(arguments);
        command
    };
    // The lists may be current already, or a mirror be out of reach: the installation decides.
    if !succeeds(&mut apt(&["update"])) {
        say("apt-get update failed: going on with the package lists that are here");
    }
    let mut install = apt(&["install", "-y", "--no-install-recommends"]);
    run(install.args(packages))
}

/// Keeps others of this tool from installing until it is dropped: stages run beside each other.
pub(crate) fn installing() -> Result<File> {
    let folder = target().join("xtask");
    fs::create_dir_all(&folder)?;
    let lock = File::create(folder.join("installing"))?;
    lock.lock()?;
    Ok(lock)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn systems_are_told_by_their_kin() {
        let cases = [
            ("ID=debian\nVERSION_ID=\"12\"\n", System::Debian),
            ("ID=linuxmint\nID_LIKE=\"ubuntu debian\"\n", System::Debian),
            ("ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n", System::Fedora),
            ("ID=arch\n", System::Other),
        ];
        for (text, expected) in cases {
            assert_eq!(System::from_os_release(text), expected, "{text}");
        }
    }

    #[test]
    fn a_message_holds_one_systems_command_alone() {
        let message = NODE.message(System::MacOs).to_string();
        assert!(message.contains("brew install node"), "{message}");
        assert!(!message.contains("apt-get"), "{message}");
    }
}
