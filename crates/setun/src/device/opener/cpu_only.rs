//! Choice of a device in a build that reaches no GPU.

use setun_engine::{DeviceReport, DeviceVerdict};

use crate::{
    device::{cpu, opened::OpenedDevice, placement::Placement},
    error::Error,
    header::ModelHeader,
};

/// Opens the best level of the processor.
#[expect(clippy::unused_async, reason = "with a GPU it waits")]
pub(super) async fn open(
    header: &ModelHeader,
    placement: &Placement,
) -> Result<OpenedDevice, Error> {
    let opened = cpu::open(header, placement)?;
    let reason = "no GPU that can be used is here";
    let chosen = DeviceVerdict::chosen(opened.backend, &opened.level, reason);
    Ok(OpenedDevice { report: DeviceReport { devices: vec![chosen] }, ..opened })
}
