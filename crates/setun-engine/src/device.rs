//! Facts that an engine reports of its devices, found when they were opened.

mod kind;

use std::time::Duration;

use serde::Serialize;
use setun_text::named_options;

pub use kind::{DeviceKind, GpuApi};

/// The devices that were looked at for a model, the one that runs first.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DeviceReport {
    /// What was found out of each.
    pub devices: Vec<DeviceVerdict>,
}

/// What was found out of a device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DeviceVerdict {
    /// What it is.
    pub device: DeviceKind,
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
    /// It is a software adapter, which is never chosen by itself.
    Software,
    /// There is none.
    Absent,
    /// It is there, and has failed: the self-test, or to hold the model.
    Failed,
}

impl DeviceReport {
    /// Notes a device that came first, and failed.
    pub fn add_failed(&mut self, device: DeviceKind, level: String, reason: String) {
        let verdict = Verdict::Failed;
        let failed = DeviceVerdict { device, level, verdict, reason, layer_microseconds: None };
        self.devices.push(failed);
    }

    /// Of a device that was requested by name.
    #[must_use]
    pub fn named(device: DeviceKind, level: &str) -> Self {
        Self { devices: vec![DeviceVerdict::chosen(device, level, "it was requested by name")] }
    }

    /// The same where the device that was chosen could not hold the model after all, for this
    /// reason, and a level of the processor runs.
    #[must_use]
    pub fn fallen_back(mut self, reason: String, level: &str) -> Self {
        let chosen = |found: &&mut DeviceVerdict| found.verdict == Verdict::Chosen;
        let mut why = "nothing else is here".to_owned();
        if let Some(failed) = self.devices.iter_mut().find(chosen) {
            failed.verdict = Verdict::Failed;
            failed.reason = reason;
            why = format!("{} failed", failed.device);
        }
        self.devices.retain(|found| found.device != DeviceKind::Cpu);
        self.devices.insert(0, DeviceVerdict::chosen(DeviceKind::Cpu, level, &why));
        self
    }

    /// Devices that are there and failed, in words for a user.
    pub fn warnings(&self) -> impl Iterator<Item = String> {
        let failed = self.devices.iter().filter(|found| found.verdict == Verdict::Failed);
        failed.map(|found| format!("{} is not used: {}", found.device, found.reason))
    }
}

impl DeviceVerdict {
    /// Of a device that runs.
    #[must_use]
    pub fn chosen(device: DeviceKind, level: &str, reason: &str) -> Self {
        let (level, reason) = (level.to_owned(), reason.to_owned());
        Self { device, level, verdict: Verdict::Chosen, reason, layer_microseconds: None }
    }

    /// The same, with the time of one layer where that was measured.
    #[must_use]
    pub fn measured(mut self, layer: Option<Duration>) -> Self {
        self.layer_microseconds = layer.map(|layer| layer.as_secs_f64() * 1e6);
        self
    }
}

/// How the head is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum HeadType {
    /// Screened where that serves and pays, otherwise stored: screened on a level of the
    /// processor, if the table is of floats and has a mebibyte or more.
    #[default]
    Auto,
    /// As the checkpoint stores it.
    Stored,
    /// As the checkpoint stores it, with 7 bits of each element beside it, which find the few
    /// rows of the table that greedy choices and those by `top_k` or `min_p` depend on. The
    /// choices are the same, and less memory is read for them; other options still take the
    /// stored table alone.
    Screened,
    /// Rounded to int8 rows: less memory to read, slightly other logits.
    Int8,
}

named_options!(HeadType {
    Auto = "auto",
    Stored = "stored",
    Screened = "screened",
    Int8 = "int8",
});

/// What a device's self-test came to: each operation, on a small model of the kind of the one
/// that is loaded, compared with its definition.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SelfTest {
    /// What it is.
    pub device: DeviceKind,
    /// Its level, or its own name.
    pub level: String,
    /// Whether it computes what the definitions say.
    pub passed: bool,
    /// How it differs; empty if it does not.
    pub reason: String,
    /// Seconds that the test took.
    pub seconds: f64,
}

impl SelfTest {
    /// A test of which nothing has failed yet.
    #[must_use]
    pub fn begun(device: DeviceKind, level: String) -> Self {
        Self { device, level, passed: true, reason: String::new(), seconds: 0.0 }
    }
}
