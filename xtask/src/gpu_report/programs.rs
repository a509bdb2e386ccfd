//! The programs of the report: built here, or brought from where they were built.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::shell::{cargo, find_program, output, say, succeeds, target};
use crate::test::workspace;

const SUFFIX: &str = std::env::consts::EXE_SUFFIX;

/// Tests of a device, by package.
const TESTS: [(&str, &str); 6] = [
    ("setun-gpu", "cuda"),
    ("setun-gpu", "gpu_parity"),
    ("setun-tests", "cuda"),
    ("setun-tests", "cuda_lost"),
    ("setun-tests", "gpu"),
    ("setun-tests", "gpu_engine"),
];

/// What reaches this system's GPUs.
fn features() -> &'static str {
    match std::env::consts::OS {
        "macos" => "metal",
        "windows" => "vulkan,dx12",
        _ => "cuda,vulkan",
    }
}

/// A folder of programs.
pub(super) struct Programs {
    pub(super) folder: PathBuf,
}

impl Programs {
    /// Programs that are there.
    pub(super) fn in_folder(folder: &Path) -> Result<Self> {
        let folder = folder.canonicalize().with_context(|| format!("{}", folder.display()))?;
        let programs = Self { folder };
        let command = programs.path("setun");
        ensure!(command.is_file(), "there is no {}", command.display());
        Ok(programs)
    }

    /// Builds all, and copies them into one folder.
    pub(super) fn build() -> Result<Self> {
        let folder = target().join("gpu-report").join("programs");
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(&folder)?;
        let programs = Self { folder };
        say(&format!("building the command with {}", features()));
        let mut command = cargo();
        command.args(["build", "--release", "--locked", "-p", "setun-cli", "--bin", "setun"]);
        command.args(["--features", features(), "--message-format", "json-render-diagnostics"]);
        let built = executables(&output(&mut command)?);
        let [(_, setun)] = &built[..] else { anyhow::bail!("cargo built no command") };
        programs.take("setun", setun)?;
        say("building the tests of a device");
        let mut command = workspace::tests();
        command.args(["--no-run", "--message-format", "json-render-diagnostics"]);
        for name in ["cuda", "cuda_lost", "gpu_parity", "gpu", "gpu_engine"] {
            command.args(["--test", name]);
        }
        let built = executables(&output(&mut command)?);
        for (package, test) in TESTS {
            let name = format!("{package}-{test}");
            let (_, path) = built.iter().find(|(found, _)| *found == name).context(name.clone())?;
            programs.take(&name, path)?;
        }
        programs.take("xtask", &std::env::current_exe()?)?;
        Ok(programs)
    }

    /// Where a program is, whether or not it is there.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}{SUFFIX}"))
    }

    /// The command with arguments.
    pub(super) fn setun(&self, args: &[&str]) -> Command {
        let mut command = Command::new(self.path("setun"));
        // Mesa says on standard error that it finds no screen, unless it does not look for one.
        command.args(args).env("NODEVICE_SELECT", "1");
        command
    }

    /// Copies a program without what it is debugged with.
    fn take(&self, name: &str, from: &Path) -> Result<()> {
        let to = self.path(name);
        fs::copy(from, &to).with_context(|| from.display().to_string())?;
        if let Some(strip) = find_program("strip") {
            // One that cannot be stripped is larger, and no worse.
            succeeds(Command::new(strip).arg(&to));
        }
        Ok(())
    }
}

/// The programs of cargo's messages, by package and name.
fn executables(messages: &str) -> Vec<(String, PathBuf)> {
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    messages
        .filter_map(|message| {
            let path = PathBuf::from(message["executable"].as_str()?);
            let manifest = PathBuf::from(message["manifest_path"].as_str()?);
            let folder = manifest.parent()?.file_name()?.to_string_lossy().into_owned();
            let package = if folder == "tests" { "setun-tests".to_owned() } else { folder };
            Some((format!("{package}-{}", message["target"]["name"].as_str()?), path))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_named_by_package_and_test() {
        let messages = "{\"reason\":\"build-finished\"}\nno JSON\n\
            {\"manifest_path\":\"/a/crates/setun-gpu/Cargo.toml\",\"target\":{\"name\":\"cuda\"},\
            \"executable\":\"/t/cuda-1\"}\n\
            {\"manifest_path\":\"/a/crates/setun-ops/Cargo.toml\",\"target\":{\"name\":\"x\"},\
            \"executable\":null}\n\
            {\"manifest_path\":\"/a/tests/Cargo.toml\",\"target\":{\"name\":\"cuda\"},\
            \"executable\":\"/t/cuda-2\"}\n";
        let expected = [("setun-gpu-cuda", "/t/cuda-1"), ("setun-tests-cuda", "/t/cuda-2")];
        let expected = expected.map(|(name, path)| (name.to_owned(), PathBuf::from(path)));
        assert_eq!(executables(messages), expected);
    }

    #[test]
    fn a_folder_has_the_command() {
        let folder = tempfile::tempdir().unwrap();
        assert!(Programs::in_folder(folder.path()).is_err());
        fs::write(folder.path().join(format!("setun{SUFFIX}")), "").unwrap();
        assert!(Programs::in_folder(folder.path()).is_ok());
    }
}
