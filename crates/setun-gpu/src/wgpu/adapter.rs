//! Finding a device of `wgpu`.

use std::sync::Arc;

#[cfg(target_family = "wasm")]
use super::failure;
use super::{Wgpu, failure::Failure};
use crate::{
    error::GpuError,
    kernel::{Dot, Language, MIN_SUBGROUP, Reduction},
};

/// An interface that `wgpu` reaches devices by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Api {
    /// Vulkan.
    #[cfg(feature = "vulkan")]
    Vulkan,
    /// Metal, on Apple's systems.
    #[cfg(feature = "metal")]
    Metal,
    /// Direct3D 12, on Windows.
    #[cfg(feature = "dx12")]
    Dx12,
    /// WebGPU, in a browser; natively whichever `wgpu` takes to be the best.
    #[cfg(feature = "webgpu")]
    WebGpu,
}

impl Api {
    fn name(self) -> &'static str {
        match self {
            #[cfg(feature = "vulkan")]
            Self::Vulkan => "vulkan",
            #[cfg(feature = "metal")]
            Self::Metal => "metal",
            #[cfg(feature = "dx12")]
            Self::Dx12 => "dx12",
            #[cfg(feature = "webgpu")]
            Self::WebGpu => "webgpu",
        }
    }

    fn backends(self) -> wgpu::Backends {
        match self {
            #[cfg(feature = "vulkan")]
            Self::Vulkan => wgpu::Backends::VULKAN,
            #[cfg(feature = "metal")]
            Self::Metal => wgpu::Backends::METAL,
            #[cfg(feature = "dx12")]
            Self::Dx12 => wgpu::Backends::DX12,
            #[cfg(feature = "webgpu")]
            Self::WebGpu => wgpu::Backends::PRIMARY,
        }
    }
}

/// An adapter of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedAdapter {
    /// Its name, as the driver gives it.
    pub name: String,
    /// Whether it is software.
    pub is_software: bool,
    /// Whether [`Adapter::find`] takes it.
    pub is_best: bool,
}

/// A device that is there, and not yet in use.
#[derive(Debug)]
pub struct Adapter {
    inner: wgpu::Adapter,
    name: String,
    language: Language,
}

impl Adapter {
    /// The best device that an interface reaches.
    ///
    /// # Errors
    ///
    /// If there is none.
    pub async fn find(api: Api) -> Result<Self, GpuError> {
        let (instance, adapter) = best(api).await?;
        let name = name(&adapter).await;
        let packed = instance
            .wgsl_language_features()
            .contains(wgpu::WgslLanguageFeatures::Packed4x8IntegerDotProduct);
        let dot = if packed { Dot::Packed } else { Dot::Shifts };
        let language = Language { dot, reduction: reduction(&adapter) };
        Ok(Self { inner: adapter, name, language })
    }

    /// All devices that an interface reaches.
    ///
    /// # Errors
    ///
    /// If there is none.
    #[cfg(not(target_family = "wasm"))]
    pub async fn list(api: Api) -> Result<Vec<ListedAdapter>, GpuError> {
        let (instance, best) = best(api).await?;
        let best = best.get_info();
        let adapters = instance.enumerate_adapters(api.backends()).await;
        let listed = |adapter: wgpu::Adapter| {
            let info = adapter.get_info();
            let is_software = info.device_type == wgpu::DeviceType::Cpu;
            ListedAdapter { is_best: info == best, name: info.name, is_software }
        };
        Ok(adapters.into_iter().map(listed).collect())
    }

    /// What its kernels are written in.
    #[must_use]
    pub fn language(&self) -> Language {
        self.language
    }

    /// Leaves subgroups alone, whatever it has: for a device that gets them wrong.
    #[must_use]
    pub fn without_subgroups(mut self) -> Self {
        self.language.reduction = Reduction::Shared;
        self
    }

    /// Its name, as the driver gives it; some give none.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it is software, which says nothing of a GPU's speed.
    #[must_use]
    pub fn is_software(&self) -> bool {
        self.inner.get_info().device_type == wgpu::DeviceType::Cpu
    }

    /// Makes it ready for use, with all that it allows.
    ///
    /// # Errors
    ///
    /// If the driver refuses.
    pub async fn open(self) -> Result<Wgpu, GpuError> {
        let Self { inner: adapter, name, language } = self;
        let wanted = match language.reduction {
            Reduction::Subgroup => wgpu::Features::SUBGROUP,
            Reduction::Shared => wgpu::Features::empty(),
        };
        let request = wgpu::DeviceDescriptor {
            label: Some("setun"),
            required_features: adapter.features() & (wanted | wgpu::Features::TIMESTAMP_QUERY),
            required_limits: adapter.limits(),
            ..wgpu::DeviceDescriptor::default()
        };
        let (device, queue) = adapter.request_device(&request).await.map_err(|error| {
            GpuError::NoDevice { adapter: name.clone(), reason: error.to_string() }
        })?;
        let failure = Failure::default();
        let seen = failure.clone();
        device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| seen.record(&error)));
        let seen = failure.clone();
        device.set_device_lost_callback(move |_, reason| seen.record_lost(reason));
        #[cfg(target_family = "wasm")]
        failure::keep_internal_errors(&device);
        Ok(Wgpu::new(device, queue, name, language, failure))
    }
}

/// The best device that an interface reaches.
async fn best(api: Api) -> Result<(wgpu::Instance, wgpu::Adapter), GpuError> {
    let absent = |reason| GpuError::NoAdapter { wanted: api.name(), reason };
    if !wgpu::Instance::enabled_backend_features().intersects(api.backends()) {
        return Err(absent("this system does not have it".to_owned()));
    }
    let mut options = wgpu::InstanceDescriptor::new_without_display_handle();
    options.backends = api.backends();
    let instance = wgpu::Instance::new(options);
    let request = wgpu::RequestAdapterOptions {
        power_preference: wgpu::PowerPreference::HighPerformance,
        ..wgpu::RequestAdapterOptions::default()
    };
    let found = instance.request_adapter(&request).await;
    let adapter = found.map_err(|error| absent(error.to_string()))?;
    Ok((instance, adapter))
}

/// Subgroups, where all that there may be are large enough.
fn reduction(adapter: &wgpu::Adapter) -> Reduction {
    let has_subgroups = adapter.features().contains(wgpu::Features::SUBGROUP);
    if has_subgroups && adapter.get_info().subgroup_min_size >= MIN_SUBGROUP {
        Reduction::Subgroup
    } else {
        Reduction::Shared
    }
}

#[cfg(not(target_family = "wasm"))]
#[expect(clippy::unused_async, reason = "a browser is waited for")]
async fn name(adapter: &wgpu::Adapter) -> String {
    adapter.get_info().name
}

#[cfg(target_family = "wasm")]
async fn name(adapter: &wgpu::Adapter) -> String {
    match adapter.get_info().name {
        name if name.is_empty() => super::web_name::name().await,
        name => name,
    }
}
