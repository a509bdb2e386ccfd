//! Why a device runs, and why others do not.

#[cfg(feature = "gpu")]
use std::time::Duration;

use serde::Serialize;

use super::Device;
use crate::error::Error;

/// The devices that were looked at for a model, the one that runs first.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DeviceReport {
    /// What was found out of each.
    pub devices: Vec<DeviceVerdict>,
}

/// What was found out of a device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DeviceVerdict {
    /// `cpu`, or the name of an interface to GPUs
    pub device: &'static str,
    /// Its level, or its own name; empty where there is no device.
    pub level: String,
    /// What came of it.
    pub verdict: Verdict,
    /// The same in words.
    pub reason: String,
    /// Microseconds that one layer of the model took for one token, where that was measured.
    pub layer_microseconds: Option<f64>,
}

/// What came of looking at a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Verdict {
    /// It runs.
    Chosen,
    /// It would do, and another is faster.
    Slower,
    /// It is a processor that plays a GPU, which is never chosen by itself.
    Software,
    /// There is none.
    Absent,
    /// It is there, and has failed: the self-test, or to hold the model.
    Failed,
}

impl DeviceReport {
    /// Notes a device that came first, and failed.
    pub(crate) fn add_failed(&mut self, device: &Device, error: &Error) {
        let (level, reason) = (device.to_string(), error.to_string());
        let device = match device {
            Device::Gpu(api) => api.name(),
            Device::Each(_) => "each",
            Device::Split(_) => "split",
            _ => "cpu",
        };
        let verdict = Verdict::Failed;
        let failed = DeviceVerdict { device, level, verdict, reason, layer_microseconds: None };
        self.devices.push(failed);
    }

    /// Of a device that was asked for by name.
    pub(super) fn named(device: &'static str, level: &str) -> Self {
        Self { devices: vec![DeviceVerdict::chosen(device, level, "it was asked for by name")] }
    }

    /// The same where the device that was chosen could not hold the model after all.
    pub(super) fn fallen_back(mut self, error: &Error, level: &str) -> Self {
        let chosen = |found: &&mut DeviceVerdict| found.verdict == Verdict::Chosen;
        let mut reason = "nothing else is here".to_owned();
        if let Some(failed) = self.devices.iter_mut().find(chosen) {
            failed.verdict = Verdict::Failed;
            failed.reason = error.to_string();
            reason = format!("{} failed", failed.device);
        }
        self.devices.retain(|found| found.device != "cpu");
        self.devices.insert(0, DeviceVerdict::chosen("cpu", level, &reason));
        self
    }

    /// Devices that are there and failed, in words: what a user should be told unasked.
    pub fn warnings(&self) -> impl Iterator<Item = String> {
        let failed = self.devices.iter().filter(|found| found.verdict == Verdict::Failed);
        failed.map(|found| format!("{} is not used: {}", found.device, found.reason))
    }
}

impl DeviceVerdict {
    pub(super) fn chosen(device: &'static str, level: &str, reason: &str) -> Self {
        let (level, reason) = (level.to_owned(), reason.to_owned());
        Self { device, level, verdict: Verdict::Chosen, reason, layer_microseconds: None }
    }

    #[cfg(feature = "gpu")]
    pub(super) fn measured(mut self, layer: Option<Duration>) -> Self {
        self.layer_microseconds = layer.map(|layer| layer.as_secs_f64() * 1e6);
        self
    }
}
