//! The processor: a level of it, or the reference implementation.

use setun_cpu::{CpuBackend, CpuOptions, Level};
use setun_engine::{DeviceReport, HeadType};
use setun_model::MaybeSendBackend;
use setun_ops::ScalarBackend;

use super::{
    Device, DeviceKind, SCALAR,
    opened::{OpenedDevice, Receiver},
    placement::Placement,
    unavailable,
};
use crate::{error::Error, header::ModelHeader};

/// Opens a level of the processor, or the reference implementation.
pub(super) fn open(header: &ModelHeader, placement: &Placement) -> Result<OpenedDevice, Error> {
    let Some(level) = placement.options.device.level() else {
        return opened(ScalarBackend, (SCALAR, 1), header, placement);
    };
    let mut backend = backend(level, placement.options.threads)?;
    let mut threads = backend.threads();
    if let Some(link) = placement.options.workers.take() {
        threads += link.workers();
        backend = backend.with_workers(link);
    }
    opened(backend, (level.name(), threads), header, placement)
}

/// A level of the processor; its own number of threads by default.
pub(super) fn backend(level: Level, threads: Option<usize>) -> Result<CpuBackend, Error> {
    CpuBackend::new(CpuOptions { level: Some(level), threads })
        .map_err(|error| unavailable(level.name(), error.to_string()))
}

fn opened<B>(
    backend: B,
    (level, threads): (&str, usize),
    header: &ModelHeader,
    placement: &Placement,
) -> Result<OpenedDevice, Error>
where
    B: MaybeSendBackend + 'static,
{
    let is_ranked = placement.head == HeadType::Screened;
    Ok(OpenedDevice {
        device: match &placement.options.device {
            Device::Auto => Device::Cpu,
            device => device.clone(),
        },
        backend: DeviceKind::Cpu,
        level: level.to_owned(),
        threads,
        head: placement.head,
        layer_time: None,
        report: DeviceReport::named(DeviceKind::Cpu, level),
        receiver: Receiver::new(backend, header, placement, is_ranked)?,
        settled: None,
    })
}
