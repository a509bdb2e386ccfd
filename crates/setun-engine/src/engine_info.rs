//! Facts that are the same for all generations on a device.

use crate::device::DeviceKind;

/// What the last event of a generation, and telemetry, say of the engine.
#[derive(Clone, Debug)]
pub(crate) struct EngineInfo {
    pub(crate) backend: DeviceKind,
    pub(crate) level: String,
    pub(crate) model: String,
    pub(crate) load_seconds: f64,
}
