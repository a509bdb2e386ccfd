//! Where a model can run, by name, and the one place that chooses.

mod again;
#[cfg_attr(not(feature = "gpu"), path = "device/alone.rs")]
mod auto;
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
mod load;
#[cfg(feature = "gpu")]
mod measure;
mod open;
mod options;
mod self_test;
#[cfg_attr(target_family = "wasm", path = "device/unsplit.rs")]
mod split;

use std::{fmt, str::FromStr};

use setun_cpu::Level;
use setun_engine::Error as EngineError;

pub(crate) use estimate::estimate;
pub(crate) use load::{Loaded, head_type, load_onto, probe};
pub(crate) use self_test::Tester;
pub(crate) use setun_engine::{DeviceReport, DeviceVerdict, HeadType, Verdict};
pub use {
    estimate::MemoryEstimate,
    load::LoadedModel,
    options::{CacheType, DeviceOptions},
};

use crate::error::Error;

/// Name of the definitions' own level.
const SCALAR: &str = "scalar";

/// Where to run. Forcing one that is not here is an error; what [`Auto`](Self::Auto) comes to, and
/// why, stands in a [`DeviceReport`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Device {
    /// The fastest device for the model among those that pass their self-test. A processor that
    /// plays a GPU is none, unless [`DeviceOptions::software`] says so.
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
    /// So many of the layers on each, in order. A GPU with 0 of them takes as many of those that
    /// are left as its memory holds, a processor with 0 the rest. Not in WebAssembly, whose code
    /// is downloaded.
    Split(Vec<(Device, usize)>),
}

/// An interface to GPUs. Each is a cargo feature of its own name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GpuApi {
    /// Vulkan.
    Vulkan,
    /// Metal, on Apple's systems.
    Metal,
    /// Direct3D 12, on Windows.
    Dx12,
    /// CUDA: NVIDIA's devices, through their own driver.
    Cuda,
    /// WebGPU, in a browser; natively the best of Vulkan, Metal and Direct3D 12.
    WebGpu,
}

impl GpuApi {
    /// All of them, whether or not this build has them.
    pub const ALL: [Self; 5] = [Self::Vulkan, Self::Metal, Self::Dx12, Self::Cuda, Self::WebGpu];

    /// The name in every interface: `vulkan`, `metal`, `dx12`, `cuda`, `webgpu`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Vulkan => "vulkan",
            Self::Metal => "metal",
            Self::Dx12 => "dx12",
            Self::Cuda => "cuda",
            Self::WebGpu => "webgpu",
        }
    }

    /// Whether this build has it.
    #[must_use]
    pub fn is_built(self) -> bool {
        match self {
            Self::Vulkan => cfg!(feature = "vulkan"),
            Self::Metal => cfg!(feature = "metal"),
            Self::Dx12 => cfg!(feature = "dx12"),
            Self::Cuda => cfg!(feature = "cuda"),
            Self::WebGpu => cfg!(feature = "webgpu"),
        }
    }
}

/// A device and level that is here.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct DeviceInfo {
    /// `cpu`, or the name of an interface to GPUs: `vulkan`, `metal`, `dx12`, `cuda`, `webgpu`
    pub device: &'static str,
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
    let levels = Level::available().into_iter().map(Level::name).chain([SCALAR]);
    let info = |(index, level): (usize, &str)| DeviceInfo {
        device: "cpu",
        level: level.to_owned(),
        chosen: index == 0,
        note: "",
    };
    let devices = levels.enumerate().map(info);
    #[cfg(all(feature = "gpu", not(target_family = "wasm")))]
    let devices = devices.chain(gpu::devices());
    devices.collect()
}

fn unavailable(wanted: &str, reason: String) -> Error {
    // GPUs are named by what the build reaches: to look for them takes a driver.
    let gpus = GpuApi::ALL.into_iter().filter(|api| api.is_built()).map(GpuApi::name);
    let levels = Level::available().into_iter().map(Level::name).chain([SCALAR]);
    let available: Vec<_> = ["auto", "cpu"].into_iter().chain(levels).chain(gpus).collect();
    Error::BackendUnavailable { wanted: wanted.to_owned(), reason, available: available.join(", ") }
}

impl Device {
    /// What reports call it, whatever its level.
    pub(crate) fn kind_name(&self) -> &'static str {
        match self {
            Self::Gpu(api) => api.name(),
            Self::Each(_) => "each",
            Self::Split(_) => "split",
            _ => "cpu",
        }
    }
}

impl FromStr for Device {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        if let Some(api) = GpuApi::ALL.into_iter().find(|api| api.name() == name) {
            let reason = || format!("this build is without the cargo feature `{name}`");
            return api
                .is_built()
                .then_some(Self::Gpu(api))
                .ok_or_else(|| unavailable(name, reason()));
        }
        if let Some(list) = name.strip_prefix("each:") {
            return Ok(Self::Each(list.split(',').map(str::parse).collect::<Result<_, _>>()?));
        }
        if let Some(list) = name.strip_prefix("split:") {
            return Ok(Self::Split(list.split(',').map(share).collect::<Result<_, _>>()?));
        }
        match name {
            "auto" => Ok(Self::Auto),
            "cpu" => Ok(Self::Cpu),
            SCALAR => Ok(Self::Scalar),
            _ => Level::available()
                .into_iter()
                .find(|level| level.name() == name)
                .map(Self::Level)
                .ok_or_else(|| unavailable(name, "this build or machine does not have it".into())),
        }
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
