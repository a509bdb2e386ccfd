//! Device reports with JavaScript names.

use serde::Serialize;
use setun::{DeviceKind, Verdict};

/// [`setun::DeviceReport`] in camel case.
#[derive(Serialize)]
pub(crate) struct DeviceReport<'a> {
    devices: Vec<DeviceVerdict<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DeviceVerdict<'a> {
    device: DeviceKind,
    level: &'a str,
    verdict: Verdict,
    reason: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    layer_microseconds: Option<f64>,
}

impl<'a> From<&'a setun::DeviceReport> for DeviceReport<'a> {
    fn from(report: &'a setun::DeviceReport) -> Self {
        let verdict = |found: &'a setun::DeviceVerdict| DeviceVerdict {
            device: found.device,
            level: &found.level,
            verdict: found.verdict,
            reason: &found.reason,
            layer_microseconds: found.layer_microseconds,
        };
        Self { devices: report.devices.iter().map(verdict).collect() }
    }
}
