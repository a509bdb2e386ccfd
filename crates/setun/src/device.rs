//! Devices by name.

mod cpu;
mod estimate;
#[cfg(feature = "gpu")]
#[cfg_attr(
    not(any(
        feature = "vulkan",
        feature = "metal",
        feature = "dx12",
        feature = "cuda",
        feature = "webgpu"
    )),
    expect(dead_code, unused_variables, clippy::unused_async, reason = "it reaches no GPU")
)]
mod gpu;
#[cfg(feature = "gpu")]
mod measure;
mod opened;
mod opener;
mod options;
mod placement;
mod self_test;

use std::{fmt, str::FromStr};

use setun_cpu::Level;
use setun_engine::Error as EngineError;
use setun_text::{FieldValue, OptionValue};

#[cfg(all(feature = "gpu", not(target_family = "wasm")))]
pub use gpu::gpu_limits;
pub(crate) use opened::OpenedDevice;
pub(crate) use opener::{DeviceOpener, device_failure};
pub(crate) use self_test::Tester;
pub(crate) use setun_engine::{DeviceKind, GpuApi, HeadType};
pub use {
    estimate::MemoryEstimate,
    opened::LoadedModel,
    options::{ActivationGroup, CacheType, DeviceOptions},
};

use crate::error::Error;

/// Name of the definitions' own level.
const SCALAR: &str = "scalar";

/// Where to run. Forcing one that is not here is an error; what [`Auto`](Self::Auto) comes to, and
/// why, stands in a [`DeviceReport`](crate::DeviceReport).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Device {
    /// The fastest device for the model among those that pass their self-test. A software adapter
    /// is none, unless [`DeviceOptions::software`] says so.
    #[default]
    Auto,
    /// The best level of the processor.
    Cpu,
    /// The operations' definitions: one thread, and slow.
    Scalar,
    /// One level of the processor.
    Level(Level),
    /// The best GPU that an interface reaches.
    Gpu(GpuApi),
    /// The model once on each: generations go to the one that has the fewest.
    Each(Vec<Device>),
    /// A number of layers on each, in order. A GPU with 0 of them takes as many of those that
    /// are left as its memory holds, a processor with 0 the rest. Not in WebAssembly, whose code
    /// is downloaded.
    Split(Vec<(Device, usize)>),
}

impl Device {
    /// Whether this build has it.
    #[must_use]
    pub fn is_built(&self) -> bool {
        match self {
            Self::Auto | Self::Cpu | Self::Scalar | Self::Level(_) => true,
            Self::Gpu(GpuApi::Vulkan) => cfg!(feature = "vulkan"),
            Self::Gpu(GpuApi::Metal) => cfg!(feature = "metal"),
            Self::Gpu(GpuApi::Dx12) => cfg!(feature = "dx12"),
            Self::Gpu(GpuApi::Cuda) => cfg!(feature = "cuda"),
            Self::Gpu(GpuApi::WebGpu) => cfg!(feature = "webgpu"),
            Self::Gpu(_) => false,
            Self::Each(devices) => devices.iter().all(Self::is_built),
            Self::Split(shares) => shares.iter().all(|(device, _)| device.is_built()),
        }
    }

    /// What will run; of [`Auto`](Self::Auto) the processor, which it comes to where nothing is
    /// faster.
    pub(crate) fn kind(&self) -> DeviceKind {
        match self {
            Self::Auto | Self::Cpu | Self::Scalar | Self::Level(_) => DeviceKind::Cpu,
            Self::Gpu(api) => DeviceKind::Gpu(*api),
            Self::Each(_) => DeviceKind::Each,
            Self::Split(_) => DeviceKind::Split,
        }
    }

    /// Checks that this build and this processor have it. GPUs are looked for once a model opens
    /// them.
    ///
    /// # Errors
    ///
    /// If they do not.
    pub fn check_available(&self) -> Result<(), Error> {
        let missing = |reason: String| Err(unavailable(&self.to_string(), reason));
        match self {
            Self::Gpu(api) if !self.is_built() => {
                missing(format!("this build is without the cargo feature `{}`", api.name()))
            }
            Self::Level(level) if !Level::available().contains(level) => {
                missing("this build or machine does not have it".into())
            }
            Self::Each(devices) => devices.iter().try_for_each(Self::check_available),
            Self::Split(shares) => {
                shares.iter().try_for_each(|(device, _)| device.check_available())
            }
            _ => Ok(()),
        }
    }

    /// The level of the processor; none of the reference implementation and of GPUs.
    fn level(&self) -> Option<Level> {
        match self {
            Self::Scalar | Self::Gpu(_) | Self::Each(_) | Self::Split(_) => None,
            Self::Level(level) => Some(*level),
            Self::Auto | Self::Cpu => Level::available().first().copied(),
        }
    }
}

/// The interfaces to GPUs that this build has.
fn built_gpus() -> impl Iterator<Item = GpuApi> {
    GpuApi::ALL.into_iter().filter(|&api| Device::Gpu(api).is_built())
}

/// A device and level that is here.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct DeviceInfo {
    /// What selects it; none where its API takes another.
    #[serde(skip)]
    pub select: Option<Device>,
    /// What it is: the processor, or a GPU.
    pub device: DeviceKind,
    /// `scalar`, `avx2`, …; a GPU's own name
    pub level: String,
    /// Whether [`Device::Auto`] takes it where no GPU is faster.
    pub chosen: bool,
    /// What else there is to know; may be empty.
    pub note: &'static str,
}

/// All that is here: the processor's levels, the best first, then GPUs.
#[must_use]
pub fn devices() -> Vec<DeviceInfo> {
    let levels = Level::available().into_iter().map(Device::Level).chain([Device::Scalar]);
    let info = |(index, select): (usize, Device)| DeviceInfo {
        device: DeviceKind::Cpu,
        level: select.to_string(),
        chosen: index == 0,
        select: Some(select),
        note: "",
    };
    let devices = levels.enumerate().map(info);
    #[cfg(all(feature = "gpu", not(target_family = "wasm")))]
    let devices = devices.chain(gpu::devices());
    devices.collect()
}

fn unavailable(wanted: &str, reason: String) -> Error {
    // GPUs are named by what the build reaches: to look for them takes a driver.
    unavailable_of(wanted, reason, built_gpus().map(GpuApi::name))
}

/// For a model that no GPU computes.
fn unavailable_gpu(wanted: &str, reason: String) -> Error {
    unavailable_of(wanted, reason, std::iter::empty())
}

fn unavailable_of(wanted: &str, reason: String, gpus: impl Iterator<Item = &'static str>) -> Error {
    let levels = Level::available().into_iter().map(Level::name).chain([SCALAR]);
    let available: Vec<_> = ["auto", "cpu"].into_iter().chain(levels).chain(gpus).collect();
    Error::BackendUnavailable { wanted: wanted.to_owned(), reason, available: available.join(", ") }
}

impl FromStr for Device {
    type Err = Error;

    /// Reads the name of a device that some build on some machine has.
    fn from_str(name: &str) -> Result<Self, Error> {
        if let Some(list) = name.strip_prefix("each:") {
            return Ok(Self::Each(list.split(',').map(str::parse).collect::<Result<_, _>>()?));
        }
        if let Some(list) = name.strip_prefix("split:") {
            return Ok(Self::Split(list.split(',').map(share).collect::<Result<_, _>>()?));
        }
        let [auto, cpu, scalar] = [Self::Auto, Self::Cpu, Self::Scalar];
        let gpus = GpuApi::ALL.into_iter().map(Self::Gpu);
        let levels = Level::ALL.into_iter().map(Self::Level);
        let mut devices = [auto, cpu, scalar].into_iter().chain(gpus).chain(levels);
        let found = devices.find(|device| device.to_string() == name);
        found.ok_or_else(|| unavailable(name, "there is no such device".into()))
    }
}

impl FieldValue for Device {
    fn read(value: &OptionValue) -> Option<Self> {
        value.text()?.parse().ok()
    }

    fn write(&self) -> Option<OptionValue> {
        Some(OptionValue::Text(self.to_string()))
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Cpu => "cpu",
            Self::Scalar => SCALAR,
            Self::Level(level) => level.name(),
            Self::Gpu(api) => api.name(),
            Self::Each(devices) => {
                let names: Vec<_> = devices.iter().map(Self::to_string).collect();
                return write!(f, "each:{}", names.join(","));
            }
            Self::Split(shares) => {
                let share = |(device, layers): &(Self, usize)| format!("{device}={layers}");
                let shares: Vec<_> = shares.iter().map(share).collect();
                return write!(f, "split:{}", shares.join(","));
            }
        })
    }
}

/// `device=layers`, or a device alone.
fn share(text: &str) -> Result<(Device, usize), Error> {
    let (device, layers) = text.split_once('=').unwrap_or((text, "0"));
    let bad = |_| EngineError::BadOption {
        option: "device",
        found: text.to_owned(),
        expected: "a device, `=` and a number of layers".into(),
    };
    Ok((device.parse()?, layers.parse().map_err(bad)?))
}
