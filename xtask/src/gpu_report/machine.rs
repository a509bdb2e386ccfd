//! The machine: its system, devices, drivers and the memory that is in use.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use super::child::Runner;
use super::programs::Programs;
use crate::shell::{find_program, output};

/// A GPU that an interface reaches.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Api {
    pub(super) name: String,
    pub(super) level: String,
    /// Whether few tokens are enough, as of a software adapter.
    pub(super) is_quick: bool,
}

/// What a build for this system reaches.
const EXPECTED: &[&str] = match std::env::consts::OS.as_bytes() {
    b"macos" => &["metal"],
    b"windows" => &["vulkan", "dx12"],
    _ => &["cuda", "vulkan"],
};

impl Api {
    /// The best device of each interface; the list has it first.
    pub(super) fn of(devices: &Value, is_quick: bool) -> Vec<Self> {
        let mut apis: Vec<Self> = vec![];
        for device in devices.as_array().into_iter().flatten() {
            let word = |key: &str| device[key].as_str().unwrap_or_default().to_owned();
            let (name, level) = (word("device"), word("level"));
            if name != "cpu" && !apis.iter().any(|api| api.name == name) {
                let is_software = word("note").starts_with("software");
                apis.push(Self { name, level, is_quick: is_quick || is_software });
            }
        }
        apis
    }
}

/// The interfaces that reach no device here.
pub(super) fn missing(apis: &[Api]) -> Vec<&'static str> {
    let is_there = |name: &str| apis.iter().any(|api| api.name == name);
    EXPECTED.iter().copied().filter(|name| !is_there(name)).collect()
}

/// What `setun devices` lists.
pub(super) fn devices(programs: &Programs, runner: &mut Runner) -> Value {
    let ended = runner.run("devices", 30, &mut programs.setun(&["devices", "--json"]));
    let devices = ended.and_then(|ended| serde_json::from_str(&ended.stdout).ok());
    devices.unwrap_or(Value::Null)
}

/// System, processor and drivers.
pub(super) fn about(devices: &Value) -> Value {
    let cpus = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let cpu = cpus.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    json!({
        "os": format!("{} {}", std::env::consts::OS, kernel.trim()).trim(),
        "architecture": std::env::consts::ARCH,
        "cpu": cpu.map(|(_, name)| name),
        "threads": std::thread::available_parallelism().map_or(1, usize::from),
        "nvidia": nvidia("name,driver_version,memory.total"),
        "devices": devices,
    })
}

/// Memory of each NVIDIA device that somebody uses, in MiB.
pub(super) fn used_memory() -> Option<Vec<String>> {
    nvidia("memory.used")
}

/// A line for each device. None without NVIDIA's tool.
fn nvidia(fields: &str) -> Option<Vec<String>> {
    let mut command = Command::new(find_program("nvidia-smi")?);
    command.args([&format!("--query-gpu={fields}"), "--format=csv,noheader"]);
    let text = output(&mut command).unwrap_or_else(|error| error.to_string());
    Some(text.lines().map(str::to_owned).collect())
}

/// The self-tests of all devices, and which `auto` takes, with a small random model.
pub(super) fn self_test(programs: &Programs, runner: &mut Runner) -> Value {
    let folder = runner.folder().join("model");
    let Some(path) = folder.to_str() else { return Value::Null };
    let synth = ["synth", "--shape", "small", "--to", "hf", "--force", path];
    let written = runner.run("a model to test with", 60, &mut programs.setun(&synth));
    if !written.is_some_and(|ended| ended.is_ok()) {
        return Value::Null;
    }
    let test = ["devices", "--json", "--model", path];
    let ended = runner.run("self-tests", 120, &mut programs.setun(&test));
    // What is left of it harms nobody.
    let _ = fs::remove_dir_all(&folder);
    ended.and_then(|ended| serde_json::from_str(&ended.stdout).ok()).unwrap_or(Value::Null)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_interface_has_its_best_device() {
        let devices = json!([
            { "device": "cpu", "level": "avx2", "note": "" },
            { "device": "vulkan", "level": "H200", "note": "chosen by auto if it is faster" },
            { "device": "vulkan", "level": "llvmpipe", "note": "not used" },
            { "device": "dx12", "level": "WARP", "note": "software, only by name" },
        ]);
        let found = Api::of(&devices, false);
        let parts = found.iter().map(|api| (api.name.as_str(), api.level.as_str(), api.is_quick));
        assert_eq!(parts.collect::<Vec<_>>(), [("vulkan", "H200", false), ("dx12", "WARP", true)]);
        assert!(Api::of(&devices, true).iter().all(|api| api.is_quick));
        assert_eq!(Api::of(&Value::Null, false), []);
        assert_eq!(missing(&[]), EXPECTED);
    }
}
