//! The choice of a device for a model, before its weights are read.

#[cfg(feature = "gpu")]
mod auto;
#[cfg(not(feature = "gpu"))]
mod cpu_only;
#[cfg(target_family = "wasm")]
mod no_split;
#[cfg(not(target_family = "wasm"))]
mod split;

use futures::future::{FutureExt, LocalBoxFuture, ready};
use setun_engine::{DeviceReport, DeviceVerdict, Error as EngineError, ErrorCode};
use setun_ops::HAS_RECURRENT;

#[cfg(feature = "gpu")]
use super::gpu;
#[cfg(not(feature = "gpu"))]
use super::unavailable;
use super::{
    Device, DeviceKind, DeviceOptions, GpuApi, cpu, opened::OpenedDevice, placement::Placement,
    unavailable_gpu,
};
use crate::{error::Error, header::ModelHeader};
#[cfg(not(feature = "gpu"))]
use cpu_only as auto;
#[cfg(target_family = "wasm")]
use no_split as split;
use split::Split;

/// Opens devices for a model, one after the other, until one takes its weights.
pub(crate) struct DeviceOpener {
    /// The model's header after the options are applied.
    header: ModelHeader,
    placement: Placement,
    plan: Plan,
}

/// What to open.
enum Plan {
    /// The device that the options name.
    Named,
    /// The processor, as no GPU computes the model's operations.
    NoGpu,
    /// The fastest device, and what else there is where that is a GPU which was opened.
    Auto(Option<Fallback>),
    /// Layers on several devices, and what else there is where a GPU could not hold them all.
    Split(Split, Option<Fallback>),
    /// The processor, after a GPU has failed.
    Cpu(Fallback),
}

/// The GPU that was chosen, and the report on the choice.
struct Fallback {
    gpu: GpuApi,
    report: DeviceReport,
    /// Why it could not take the model.
    reason: String,
}

impl DeviceOpener {
    /// For a model, with options that name one device or leave it open.
    pub(crate) fn new(header: &ModelHeader, options: DeviceOptions) -> Result<Self, Error> {
        if let Some(threads) = options.threads.filter(|&threads| threads == 0 || threads > 1024) {
            let (found, expected) = (threads.to_string(), "1 to 1024".into());
            return Err(EngineError::BadOption { option: "threads", found, expected }.into());
        }
        let mut header = header.clone();
        header.apply(&options)?;
        let placement = Placement::new(&header, options);
        header.check_device(&placement.options.device)?;
        let plan = match &placement.options.device {
            Device::Auto if header.needs_processor() => Plan::NoGpu,
            Device::Auto => Plan::Auto(None),
            Device::Split(shares) => Plan::Split(Split::new(shares, &header)?, None),
            Device::Each(_) => {
                let (found, expected) = (placement.options.device.to_string(), "one device".into());
                return Err(EngineError::BadOption { option: "device", found, expected }.into());
            }
            _ => Plan::Named,
        };
        Ok(Self { header, placement, plan })
    }

    /// How the model is to be kept.
    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn options(&self) -> &DeviceOptions {
        &self.placement.options
    }

    /// The model as it will run.
    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn header(&self) -> &ModelHeader {
        &self.header
    }

    /// Opens the device that comes next.
    pub(crate) async fn open(&mut self) -> Result<OpenedDevice, Error> {
        let Self { header, placement, plan } = self;
        match plan {
            Plan::Named => open_named(header, placement).await,
            Plan::NoGpu => {
                let opened = cpu::open(header, placement)?;
                let chosen = DeviceVerdict::chosen(opened.backend, &opened.level, NO_HYBRID);
                Ok(OpenedDevice { report: DeviceReport { devices: vec![chosen] }, ..opened })
            }
            Plan::Auto(fallback) => {
                let opened = auto::open(header, placement).await?;
                if let DeviceKind::Gpu(gpu) = opened.backend {
                    let (report, reason) = (opened.report.clone(), String::new());
                    *fallback = Some(Fallback { gpu, report, reason });
                }
                Ok(opened)
            }
            Plan::Split(split, _) => split.open(header, placement).await,
            Plan::Cpu(Fallback { report, reason, .. }) => {
                let opened = cpu::open(header, placement)?;
                let report = report.clone().fallen_back(reason.clone(), &opened.level);
                Ok(OpenedDevice { report, ..opened })
            }
        }
    }

    /// Whether there is something else to open should the device fail that was opened last.
    pub(crate) fn has_fallback(&self) -> bool {
        match &self.plan {
            Plan::Named | Plan::NoGpu | Plan::Cpu(_) => false,
            Plan::Auto(fallback) => fallback.is_some(),
            Plan::Split(split, fallback) => fallback.is_some() || split.can_shrink(),
        }
    }

    /// Turns to what else there is, after the device that was opened last has failed.
    ///
    /// # Errors
    ///
    /// The same error where it concerns no device, or there is nothing else.
    pub(crate) fn fall_back(&mut self, error: Error) -> Result<(), Error> {
        let failure = device_failure(&error);
        let is_out_of_memory = failure == Some(DeviceFailure::OutOfMemory);
        let has_failed = is_out_of_memory || failure == Some(DeviceFailure::Lost);
        self.plan = match std::mem::replace(&mut self.plan, Plan::Named) {
            Plan::Auto(Some(fallback)) if has_failed => {
                let fallback = Fallback { reason: error.to_string(), ..fallback };
                let shares = [(Device::Cpu, 0), (Device::Gpu(fallback.gpu), 0)];
                match Split::new(&shares, &self.header) {
                    Ok(split) if is_out_of_memory => Plan::Split(split, Some(fallback)),
                    _ => Plan::Cpu(fallback),
                }
            }
            Plan::Split(mut split, fallback) if has_failed && split.can_shrink() => {
                split.shrink(&self.header);
                Plan::Split(split, fallback)
            }
            Plan::Split(_, Some(fallback)) if failure.is_some() => Plan::Cpu(fallback),
            _ => return Err(error),
        };
        Ok(())
    }
}

/// Why no GPU of this build runs a hybrid model.
const NO_HYBRID: &str = "no GPU of this build computes recurrent layers";

/// The GPUs that are named.
fn gpus_of(device: &Device) -> Vec<GpuApi> {
    match device {
        Device::Gpu(api) => vec![*api],
        Device::Split(shares) => shares.iter().flat_map(|(device, _)| gpus_of(device)).collect(),
        _ => vec![],
    }
}

impl ModelHeader {
    /// Whether only processors have its operations, as they have those of hybrid models in builds for pages.
    #[must_use]
    pub fn needs_processor(&self) -> bool {
        !GpuApi::ALL.into_iter().any(|api| self.runs_on(api))
    }

    /// Whether the GPUs of an interface have its operations: CUDA has none of hybrid models.
    pub(super) fn runs_on(&self, api: GpuApi) -> bool {
        !self.is_hybrid() || (HAS_RECURRENT && api != GpuApi::Cuda)
    }

    /// Whether it has recurrent layers, gates of attention or rotated inputs.
    fn is_hybrid(&self) -> bool {
        let is_recurrent = self.config.layers.iter().any(|layer| layer.delta_net().is_some());
        is_recurrent || self.config.attention_gate || self.config.hadamard.is_some()
    }

    /// Refuses a GPU that is named and lacks operations of the model.
    pub(super) fn check_device(&self, device: &Device) -> Result<(), Error> {
        match gpus_of(device).into_iter().find(|api| !self.runs_on(*api)) {
            Some(gpu) => Err(unavailable_gpu(gpu.name(), lacking(gpu))),
            None => Ok(()),
        }
    }
}

/// Why the GPUs of an interface do not run a hybrid model.
pub(super) fn lacking(api: GpuApi) -> String {
    format!("{} does not compute recurrent layers yet", api.name())
}

/// Opens the device that the options name: a GPU, a level of the processor, or the reference
/// implementation. Boxed, so that its code is there once.
fn open_named<'a>(
    header: &'a ModelHeader,
    placement: &'a Placement,
) -> LocalBoxFuture<'a, Result<OpenedDevice, Error>> {
    let Device::Gpu(api) = placement.options.device else {
        return ready(cpu::open(header, placement)).boxed_local();
    };
    #[cfg(not(feature = "gpu"))]
    return ready(Err(unavailable(api.name(), "this build has no GPU".into()))).boxed_local();
    #[cfg(feature = "gpu")]
    async move {
        let wanted = gpu::Wanted { software: true, timed: false };
        let opened = gpu::open(api, header, &placement.on_gpu(), wanted).await;
        opened.map_err(|refusal| refusal.into_error(api))
    }
    .boxed_local()
}

/// How a device has failed a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeviceFailure {
    /// It is not here.
    Absent,
    /// It has too little memory.
    OutOfMemory,
    /// It went away.
    Lost,
}

/// The failure of a device that an error reports, where another device may do better; none where
/// the model or an option is at fault.
pub(crate) fn device_failure(error: &Error) -> Option<DeviceFailure> {
    match error.code() {
        ErrorCode::BackendUnavailable => Some(DeviceFailure::Absent),
        ErrorCode::OutOfMemory => Some(DeviceFailure::OutOfMemory),
        ErrorCode::DeviceLost => Some(DeviceFailure::Lost),
        _ => None,
    }
}
