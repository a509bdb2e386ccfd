//! The choice among the devices that are here.

use std::time::Duration;

use setun_cpu::Level;
use setun_model::ModelError;

use super::{
    DeviceReport, DeviceVerdict, GpuApi, HeadType, Verdict,
    gpu::{self, Wanted},
    load::{Place, cpu, open_cpu},
    measure::layer_time,
    open::Opened,
};
use crate::{error::Error, reader::Sketch};

/// Opens the fastest device for a model among those that pass their self-test. The processor is
/// measured only if there is something to compare it with.
pub(super) async fn open(sketch: &Sketch, place: &Place) -> Result<(Opened, DeviceReport), Error> {
    let mut report = DeviceReport::default();
    let opened = match best_gpu(sketch, place, &mut report).await? {
        Some(gpu) => compare(gpu, sketch, place, &mut report).await?,
        None => open_cpu(sketch, place)?,
    };
    let reason = match (opened.layer, place.options.head) {
        (_, HeadType::Screened) => "a screened head is for processors",
        (Some(_), _) => "the fastest for this model",
        (None, _) if opened.backend == "cpu" => "no GPU that can be used is here",
        (None, _) => "the processor cannot be measured",
    };
    let chosen = DeviceVerdict::chosen(opened.backend, &opened.level, reason);
    report.devices.insert(0, chosen.measured(opened.layer));
    Ok((opened, report))
}

/// The fastest of the GPUs that pass their self-test.
async fn best_gpu(
    sketch: &Sketch,
    place: &Place,
    report: &mut DeviceReport,
) -> Result<Option<Opened>, Error> {
    if place.options.head == HeadType::Screened {
        return Ok(None);
    }
    let wanted = Wanted { software: place.options.software, timed: true };
    let mut best = None::<Opened>;
    for api in GpuApi::ALL.into_iter().filter(|api| api.is_built() && !is_repeated(*api)) {
        match gpu::open(api, sketch, &place.on_gpu(), wanted).await {
            Ok(opened) if best.as_ref().is_none_or(|best| opened.layer < best.layer) => {
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
    api == GpuApi::WebGpu && others.into_iter().any(GpuApi::is_built)
}

/// The faster of a GPU and the processor.
async fn compare(
    gpu: Opened,
    sketch: &Sketch,
    place: &Place,
    report: &mut DeviceReport,
) -> Result<Opened, Error> {
    let Some(&level) = Level::available().first() else { return Ok(gpu) };
    let layer = match processor_time(level, sketch, place).await {
        Ok(layer) => Some(layer),
        Err(error) => {
            let verdict = DeviceVerdict::chosen("cpu", level.name(), &error.to_string());
            report.devices.push(DeviceVerdict { verdict: Verdict::Failed, ..verdict });
            return Ok(gpu);
        }
    };
    if gpu.layer <= layer {
        let verdict = DeviceVerdict::chosen("cpu", level.name(), "").measured(layer);
        report.devices.push(DeviceVerdict {
            verdict: Verdict::Slower,
            reason: "slower for this model".into(),
            ..verdict
        });
        return Ok(gpu);
    }
    report.devices.push(slower(&gpu));
    Ok(Opened { layer, ..open_cpu(sketch, place)? })
}

async fn processor_time(level: Level, sketch: &Sketch, place: &Place) -> Result<Duration, Error> {
    let mut backend = cpu(level, place)?;
    let time = layer_time(&mut backend, sketch, place.cache(sketch)).await;
    Ok(time.map_err(ModelError::from)?)
}

fn slower(opened: &Opened) -> DeviceVerdict {
    let reason = "slower for this model";
    let verdict = DeviceVerdict::chosen(opened.backend, &opened.level, reason);
    DeviceVerdict { verdict: Verdict::Slower, ..verdict.measured(opened.layer) }
}
