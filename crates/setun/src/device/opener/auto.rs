//! Choice among the devices that are here.

use std::time::Duration;

use setun_cpu::Level;
use setun_engine::{DeviceReport, DeviceVerdict, HeadType, Verdict};
use setun_model::ModelError;

use super::lacking;
use crate::{
    device::{
        DeviceKind, GpuApi, built_gpus, cpu,
        gpu::{self, Wanted},
        measure::layer_time,
        opened::OpenedDevice,
        placement::Placement,
    },
    error::Error,
    header::ModelHeader,
};

/// Opens the fastest device for a model among those that pass their self-test. The processor is
/// measured only if there is something to compare it with.
pub(super) async fn open(
    header: &ModelHeader,
    placement: &Placement,
) -> Result<OpenedDevice, Error> {
    let mut report = DeviceReport::default();
    let opened = match best_gpu(header, placement, &mut report).await? {
        Some(gpu) => compare(gpu, header, placement, &mut report).await?,
        None => cpu::open(header, placement)?,
    };
    let reason = match (opened.layer_time, placement.options.head) {
        (_, HeadType::Screened) => "a screened head is for processors",
        (Some(_), _) => "the fastest for this model",
        (None, _) if opened.backend == DeviceKind::Cpu => "no GPU that can be used is here",
        (None, _) => "the processor cannot be measured",
    };
    let chosen = DeviceVerdict::chosen(opened.backend, &opened.level, reason);
    report.devices.insert(0, chosen.measured(opened.layer_time));
    Ok(OpenedDevice { report, ..opened })
}

/// The fastest of the GPUs that pass their self-test.
async fn best_gpu(
    header: &ModelHeader,
    placement: &Placement,
    report: &mut DeviceReport,
) -> Result<Option<OpenedDevice>, Error> {
    if placement.options.head == HeadType::Screened {
        return Ok(None);
    }
    let wanted = Wanted { software: placement.options.software, timed: true };
    let mut best = None::<OpenedDevice>;
    for api in built_gpus().filter(|api| !is_repeated(*api)) {
        if !header.runs_on(api) {
            let lacking = DeviceVerdict::chosen(DeviceKind::Gpu(api), "", &lacking(api));
            report.devices.push(DeviceVerdict { verdict: Verdict::Absent, ..lacking });
            continue;
        }
        match gpu::open(api, header, &placement.on_gpu(), wanted).await {
            Ok(opened) if best.as_ref().is_none_or(|best| opened.layer_time < best.layer_time) => {
                report.devices.extend(best.replace(opened).as_ref().map(slower));
            }
            Ok(opened) => report.devices.push(slower(&opened)),
            Err(refusal) => report.devices.push(refusal.into_verdict(api)?),
        }
    }
    Ok(best)
}

/// Natively `webgpu` is one of those that are looked at by themselves.
fn is_repeated(api: GpuApi) -> bool {
    let others = [GpuApi::Vulkan, GpuApi::Metal, GpuApi::Dx12];
    api == GpuApi::WebGpu && built_gpus().any(|built| others.contains(&built))
}

/// The faster of a GPU and the processor.
async fn compare(
    gpu: OpenedDevice,
    header: &ModelHeader,
    placement: &Placement,
    report: &mut DeviceReport,
) -> Result<OpenedDevice, Error> {
    let Some(&level) = Level::available().first() else { return Ok(gpu) };
    let layer = match processor_time(level, header, placement).await {
        Ok(layer) => Some(layer),
        Err(error) => {
            let verdict = DeviceVerdict::chosen(DeviceKind::Cpu, level.name(), &error.to_string());
            report.devices.push(DeviceVerdict { verdict: Verdict::Failed, ..verdict });
            return Ok(gpu);
        }
    };
    if gpu.layer_time <= layer {
        let verdict = DeviceVerdict::chosen(DeviceKind::Cpu, level.name(), "").measured(layer);
        report.devices.push(DeviceVerdict {
            verdict: Verdict::Slower,
            reason: "slower for this model".into(),
            ..verdict
        });
        return Ok(gpu);
    }
    report.devices.push(slower(&gpu));
    Ok(OpenedDevice { layer_time: layer, ..cpu::open(header, placement)? })
}

async fn processor_time(
    level: Level,
    header: &ModelHeader,
    placement: &Placement,
) -> Result<Duration, Error> {
    let mut backend = cpu::backend(level, placement.options.threads)?;
    let time = layer_time(&mut backend, header, placement.cache(header)).await;
    Ok(time.map_err(ModelError::from)?)
}

fn slower(opened: &OpenedDevice) -> DeviceVerdict {
    let reason = "slower for this model";
    let verdict = DeviceVerdict::chosen(opened.backend, &opened.level, reason);
    DeviceVerdict { verdict: Verdict::Slower, ..verdict.measured(opened.layer_time) }
}
