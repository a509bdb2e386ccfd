//! Kinds of devices.

use std::fmt;

use serde::{Serialize, Serializer};

/// What runs a model. The facade's `Device` says what to run it on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DeviceKind {
    /// The processor.
    Cpu,
    /// A GPU, reached through an interface.
    Gpu(GpuApi),
    /// Several devices, each with the whole model.
    Each,
    /// Several devices, each with some of the layers.
    Split,
    /// Wherever a custom model runs.
    Custom,
}

impl DeviceKind {
    /// The name in every interface: `cpu`, a GPU interface's [name](GpuApi::name), `each`,
    /// `split`, `custom`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Gpu(api) => api.name(),
            Self::Each => "each",
            Self::Split => "split",
            Self::Custom => "custom",
        }
    }
}

impl fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Serialize for DeviceKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
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
}
