//! Finding a device of `wgpu`.

use std::sync::{Arc, Mutex};

use super::{Wgpu, note};
use crate::error::GpuError;

/// An interface that `wgpu` reaches devices by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Api {
    /// Vulkan.
    #[cfg(feature = "vulkan")]
    Vulkan,
}

impl Api {
    fn name(self) -> &'static str {
        match self {
            #[cfg(feature = "vulkan")]
            Self::Vulkan => "vulkan",
        }
    }

    fn backends(self) -> wgpu::Backends {
        match self {
            #[cfg(feature = "vulkan")]
            Self::Vulkan => wgpu::Backends::VULKAN,
        }
    }
}

/// A device that is there, and not yet in use.
#[derive(Debug)]
pub struct Adapter {
    adapter: wgpu::Adapter,
    name: String,
}

impl Adapter {
    /// The best device that an interface reaches.
    ///
    /// # Errors
    ///
    /// If there is none.
    pub async fn find(api: Api) -> Result<Self, GpuError> {
        let mut options = wgpu::InstanceDescriptor::new_without_display_handle();
        options.backends = api.backends();
        let instance = wgpu::Instance::new(options);
        let request = wgpu::RequestAdapterOptions {
            power_preference: wgpu::PowerPreference::HighPerformance,
            ..wgpu::RequestAdapterOptions::default()
        };
        let adapter = instance.request_adapter(&request).await.map_err(|error| {
            GpuError::NoAdapter { wanted: api.name(), reason: error.to_string() }
        })?;
        let name = adapter.get_info().name;
        Ok(Self { adapter, name })
    }

    /// Its name, as the driver gives it; some give none.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it is software, which says nothing of a GPU's speed.
    #[must_use]
    pub fn is_software(&self) -> bool {
        self.adapter.get_info().device_type == wgpu::DeviceType::Cpu
    }

    /// Makes it ready for use, with all that it allows.
    ///
    /// # Errors
    ///
    /// If the driver refuses.
    pub async fn open(self) -> Result<Wgpu, GpuError> {
        let Self { adapter, name } = self;
        let request = wgpu::DeviceDescriptor {
            label: Some("setun"),
            required_features: adapter.features() & wgpu::Features::TIMESTAMP_QUERY,
            required_limits: adapter.limits(),
            ..wgpu::DeviceDescriptor::default()
        };
        let (device, queue) = adapter.request_device(&request).await.map_err(|error| {
            GpuError::NoDevice { adapter: name.clone(), reason: error.to_string() }
        })?;
        let failure = Arc::new(Mutex::new(None));
        let seen = Arc::clone(&failure);
        device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| {
            let is_memory = matches!(error, wgpu::Error::OutOfMemory { .. });
            note(&seen, error.to_string(), is_memory);
        }));
        let seen = Arc::clone(&failure);
        device.set_device_lost_callback(move |_, reason| note(&seen, reason, false));
        Ok(Wgpu::new(device, queue, name, failure))
    }
}
